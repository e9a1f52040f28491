// The small screens: one file for all of them.
import "../main";
export { Audit } from "./audit";
export { Help } from "./help";
export { Inbox } from "./inbox";
export { Policy } from "./policy";
export { Recordings } from "./recordings";
export { Tasks } from "./tasks";

// The screens with charts.
import "../main";
export { Charts } from "./charts";
export { Servers } from "./servers";

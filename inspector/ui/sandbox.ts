// The outer frame of an app: it is on another host than the page, and has the app in an inner frame.
export {};

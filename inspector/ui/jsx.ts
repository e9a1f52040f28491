// What elements in TSX become: the bundler adds this import to each file that has some.
export { h as element, Fragment as fragment } from "preact";

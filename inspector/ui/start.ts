// Where the page begins. Screens that are loaded later import main too, so all that it has stays in one file.
import "./main";

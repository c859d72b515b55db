import { render } from "preact";
import { startConnection } from "./app/connection";
import { startPreferences } from "./app/preferences";
import { startRouter } from "./app/router";
import { startSession } from "./app/session";
import { Shell } from "./app/Shell";
import { startShortcuts } from "./app/shortcuts";
import "./design/tokens.css";
import "./design/base.css";

startPreferences();
startRouter();
startConnection();
startShortcuts();
void startSession();
const mount = document.getElementById("app");
if (mount) render(<Shell />, mount);

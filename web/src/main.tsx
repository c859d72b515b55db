import { render } from "preact";
import { startConnection } from "./state/connection";
import { startPreferences } from "./state/preferences";
import { showColour } from "./state/presentation";
import { startRouter } from "./state/router";
import { startSession } from "./state/session";
import { Shell } from "./app/Shell";
import { startShortcuts } from "./state/shortcuts";
import "./design/tokens.css";
import "./design/base.css";

startPreferences();
showColour();
startRouter();
startConnection();
startShortcuts();
void startSession();
const mount = document.getElementById("app");
if (mount) render(<Shell />, mount);

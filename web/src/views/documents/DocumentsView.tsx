/** Documents: the list with uploads, or one document. */
import { route } from "../../state/router";
import { DocumentPage } from "./DocumentPage";
import { DocumentsPage } from "./DocumentsPage";

export default function DocumentsView() {
  const [id] = route.value.path;
  return id ? <DocumentPage key={id} id={id} /> : <DocumentsPage />;
}

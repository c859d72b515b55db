/** Korean regulations: their list, the text of each on one page, editions side by side, and what to check. */
import { route } from "../../state/router";
import { RegulationPage } from "./RegulationPage";
import { RegulationsPage } from "./RegulationsPage";
import { address, placeOf } from "./state";

export default function RegulationsView() {
  const { at } = address.read();
  const [named] = route.value.path;
  const [name, place] = named === undefined ? placeOf(at) : [named, at];
  return name ? <RegulationPage key={name} name={name} at={place} /> : <RegulationsPage />;
}

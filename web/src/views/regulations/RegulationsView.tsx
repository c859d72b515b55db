/** Korean regulations: a list, outlines, articles with their citations, editions side by side, and what to check. */
import { route } from "../../state/router";
import { ProvisionPage } from "./ProvisionPage";
import { RegulationPage } from "./RegulationPage";
import { RegulationsPage } from "./RegulationsPage";
import { address } from "./state";

export default function RegulationsView() {
  const { at } = address.read();
  const name = route.value.path[0];
  if (at) return <ProvisionPage key={at} reference={at} />;
  return name ? <RegulationPage key={name} name={name} /> : <RegulationsPage />;
}

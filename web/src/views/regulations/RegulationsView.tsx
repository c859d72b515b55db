/** Korean regulations: a list, the outline of each, an article with its citations, and editions side by side. */
import { route } from "../../app/router";
import { ProvisionPage } from "./ProvisionPage";
import { RegulationList } from "./RegulationList";
import { RegulationPage } from "./RegulationPage";
import { address } from "./state";

export default function RegulationsView() {
  const { at } = address.read();
  const name = route.value.path[0];
  if (at) return <ProvisionPage key={at} reference={at} />;
  return name ? <RegulationPage key={name} name={name} /> : <RegulationList />;
}

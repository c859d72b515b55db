/** Traces: the list of answers, or how one of them was made. */
import { route } from "../../state/router";
import { TraceList } from "./TraceList";
import { TracePage } from "./TracePage";

export default function TraceView() {
  const [id] = route.value.path;
  return id ? <TracePage key={id} id={id} /> : <TraceList />;
}

import { expect, test } from "vitest";
import { Problem } from "../api/problem";
import { mount } from "../test/setup";
import { Failure } from "./States";

test("the seconds to wait are not read out: they are neither in the alert nor in the button's name", () => {
  const problem = new Problem("busy", "Wait.", 429, "TooManyRequests", null, 7);
  const element = mount(<Failure problem={problem} onRetry={() => undefined} />);
  const button = element.querySelector("button");
  expect(element.querySelector("[role=alert]")?.textContent).toBe("Too many requestsWait.");
  expect(button?.disabled).toBe(true);
  button?.querySelector("[aria-hidden]:not(svg)")?.remove();
  expect(button?.textContent).toBe("Try again");
});

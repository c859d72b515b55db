import { expect, test } from "vitest";
import { navigate } from "../../state/router";
import { address, filtersOf, placeOf } from "./state";

test("filters are read from the address, and left out when they are not set", () => {
  navigate("#/cases?status=archived&stale=current");
  expect(filtersOf(address.read())).toEqual({ status: "archived", stale: false });
  navigate("#/cases?status=nonsense");
  expect(filtersOf(address.read())).toEqual({ status: undefined, stale: undefined });
  expect(filtersOf({ status: "active", stale: "stale" })).toEqual({ status: "active", stale: true });
});

test("the place of a passage", () => {
  expect(placeOf("3d94dbcd-7f3c:12")).toEqual({ document: "3d94dbcd-7f3c", ordinal: 12 });
  expect(placeOf("nothing")).toBeNull();
});

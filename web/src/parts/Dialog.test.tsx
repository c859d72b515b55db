import { expect, test, vi } from "vitest";
import { mount } from "../test/setup";
import { Dialog } from "./Dialog";

test("only a click that began beside the dialog closes it", () => {
  const onClose = vi.fn();
  mount(
    <Dialog title="Title" open onClose={onClose}>
      <p id="text">A text to select</p>
    </Dialog>,
  );
  const dialog = document.querySelector("dialog");
  const press = (target: Element | null) => target?.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
  press(document.querySelector("#text"));
  dialog?.click();
  expect(onClose).not.toHaveBeenCalled();
  press(dialog);
  dialog?.click();
  expect(onClose).toHaveBeenCalledOnce();
});

import { expect, test, vi } from "vitest";
import { announce } from "../state/announce";
import { LiveRegion } from "./LiveRegion";
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

test("a sentence is read out in the topmost dialog, where the page behind it is inert, and only once", async () => {
  const texts = (element: HTMLElement) => element.querySelector("[role=status]")?.textContent;
  const page = mount(<LiveRegion dialog={null} />);
  announce("Before.");
  await vi.waitFor(() => expect(texts(page)).toBe("Before."));
  const over = document.createElement("div");
  document.body.append(over);
  const { render } = await import("preact");
  const show = (open: boolean) =>
    render(
      <Dialog title="Title" open={open} onClose={() => undefined}>
        text
      </Dialog>,
      over,
    );
  show(true);
  await vi.waitFor(() => expect(texts(page)).toBe(""));
  expect(texts(over)).toBe("");
  announce("Within.");
  await vi.waitFor(() => expect(texts(over)).toBe("Within."));
  expect(texts(page)).toBe("");
  show(false);
  announce("Closed.");
  await vi.waitFor(() => expect(texts(page)).toBe("Closed."));
  render(null, over);
  over.remove();
});

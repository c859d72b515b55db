/** Icons of one stroke width, drawn in the colour of the text. They say nothing to screen readers: the text does. */
const PATHS = {
  ask: "M3 4.5h14v9H9l-4 3v-3H3z",
  search: "M8.5 3.5a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM12.2 12.2l4.3 4.3",
  regulations: "M10 3v14M5 17h10M4 6h12M4 6l-2 5h4zM16 6l-2 5h4z",
  documents: "M5 3h7l3 3v11H5zM12 3v3h3M7.5 10h5M7.5 13h5",
  taxonomy: "M3.5 4h5v3h-5zM11.5 8.5h5v3h-5zM11.5 14h5v3h-5zM6 7v8.5h5.5M6 10h5.5",
  agents: "M10 3.5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM4 16.5c.5-3 3-4.5 6-4.5s5.5 1.5 6 4.5z",
  review: "M4 3.5h12v13H4zM7 10l2.2 2.2L13.5 7.5",
  cases: "M3 6.5h14v10H3zM7 6.5v-3h6v3M3 10.5h14",
  evaluation: "M3 17h14M5.5 14v-4M10 14V5M14.5 14V8",
  trace: "M3 5h8M6 10h8M10 15h7",
  keys: "M6.5 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM9.5 10H17v3M14 10v2.5",
  audit: "M4 3.5h12v13H4zM7 7h6M7 10h6M7 13h3",
  settings: "M3 6h7M14 6h3M3 14h3M10 14h7M12 4v4M8 12v4",
  menu: "M3 5.5h14M3 10h14M3 14.5h14",
  close: "M5 5l10 10M15 5L5 15",
  down: "M5 8l5 5 5-5",
  right: "M8 5l5 5-5 5",
  stop: "M6 6h8v8H6z",
  retry: "M15.5 8A6 6 0 1 0 16 11.5M16 4v4h-4",
  copy: "M7 7h9v9H7zM4 13V4h9",
  link: "M8 12l4-4M9 6l1.5-1.5a3.2 3.2 0 0 1 4.5 4.5L13.5 10.5M11 14l-1.5 1.5A3.2 3.2 0 0 1 5 11l1.5-1.5",
  up: "M6 9.5l4-6c1.5 0 2 1 1.7 2.5L11.3 8H16l-1.3 7.5H6zM3 9.5h3v6H3z",
  thumbDown: "M6 10.5l4 6c1.5 0 2-1 1.7-2.5L11.3 12H16l-1.3-7.5H6zM3 4.5h3v6H3z",
  send: "M10 16V4.5M5 9l5-4.5L15 9",
  plus: "M10 4v12M4 10h12",
  trash: "M4 6h12M8 6V3.5h4V6M5.5 6l.7 10.5h7.6L14.5 6",
  check: "M4.5 10.5l3.5 3.5 7.5-8",
  history: "M4 10a6 6 0 1 0 2-4.5M4 3.5v3.5h3.5M10 7v3.5l2.5 1.5",
  external: "M8 4H4v12h12v-4M11 4h5v5M16 4l-7 7",
  options: "M10 5.5a1 1 0 1 0 0-.01M10 10.5a1 1 0 1 0 0-.01M10 15.5a1 1 0 1 0 0-.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg
      viewBox="0 0 20 20"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

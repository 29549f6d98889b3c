import { html } from './html.mjs';

/** Drawn with lines on a field of 16 by 16. */
const paths = {
  options: 'M2 5h7M13 5h1M2 11h1M7 11h7M11 3v4M5 9v4',
  image: 'M2.5 3h11v10h-11zM2.5 11l3.5-3.5 3 3 2-2 2.5 2.5M10 6h.01',
  code: 'M5 4.5 1.5 8 5 11.5M11 4.5 14.5 8 11 11.5M9 3 7 13',
  plus: 'M8 3v10M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  send: 'M8 13V3M3.5 7.5 8 3l4.5 4.5',
} as const;

export type IconName = keyof typeof paths;

/** Says nothing to screen readers: the word beside it does. */
export function Icon({ name }: { readonly name: IconName }) {
  return html`<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d=${paths[name]} /></svg>`;
}

import { html } from '../ui/html.mjs';
import { placeAt } from './scale.mjs';

interface ScrubberProps {
  /** What it walks over, as in "Requests, minute by minute". */
  readonly label: string;
  readonly count: number;
  /** null: nothing is pointed at. */
  readonly index: number | null;
  /** What is at the place that is pointed at, or at the last one. */
  readonly text: string;
  readonly onPoint: (index: number | null) => void;
}

/**
 * Lies over a drawing of places from left to right, and points at one: by the mouse, by a finger, and by the arrow keys. It
 * is a control of the browser's own, so that screen readers know how to use it.
 */
export function Scrubber({ label, count, index, text, onPoint }: ScrubberProps) {
  const follow = ({ currentTarget, clientX, pointerType }: PointerEvent & { currentTarget: HTMLElement }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    if (pointerType !== 'touch') onPoint(placeAt((clientX - left) / width, count));
  };
  const leave = ({ currentTarget }: PointerEvent & { currentTarget: HTMLElement }) => {
    if (!currentTarget.matches(':focus')) onPoint(null);
  };
  return html`<input
    class="scrubber"
    type="range"
    min="0"
    max=${Math.max(0, count - 1)}
    value=${index ?? count - 1}
    aria-label=${label}
    aria-valuetext=${text}
    onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => onPoint(currentTarget.valueAsNumber)}
    onFocus=${({ currentTarget }: { currentTarget: HTMLInputElement }) => onPoint(currentTarget.valueAsNumber)}
    onBlur=${() => onPoint(null)}
    onPointerMove=${follow}
    onPointerLeave=${leave}
  />`;
}

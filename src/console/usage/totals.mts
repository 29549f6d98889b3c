import { costText, countText } from '../format.mjs';
import { html } from '../ui/html.mjs';
import { secondsText } from './usage-columns.mjs';
import type { UsageSum } from './usage-figures.mjs';

/** What it all comes to, in large figures. */
export function Totals({ sum }: { readonly sum: UsageSum }) {
  const { jobs, failed, refused, input, output, cost, seconds } = sum;
  const tiles = [
    ['Jobs', countText(jobs), `${countText(failed)} failed, ${countText(refused)} refused`],
    ['Tokens', countText(input + output), `${countText(input)} in, ${countText(output)} out`],
    [
      'Cost',
      cost === null ? '–' : costText(cost),
      cost === null ? 'the model CLI tells none' : 'as the model CLI tells',
    ],
    ['Model time', secondsText(seconds), 'for which jobs held a slot'],
  ] as const;
  return html`<dl class="tiles">
    ${tiles.map(
      ([name, value, note]) => html`<div class="card">
        <dt>${name}</dt>
        <dd><strong class="figure">${value}</strong><small class="muted figure">${note}</small></dd>
      </div>`,
    )}
  </dl>`;
}

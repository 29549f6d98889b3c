import { html } from '../ui/html.mjs';
import type { ComposerProps } from './composer.mjs';

type ChoiceProps = Pick<ComposerProps, 'draft' | 'onChange' | 'models'>;

/** Nothing to choose from until the list is there: then the service asks its default model. */
export function ModelChoice({ draft, onChange, models }: ChoiceProps) {
  const own = models.find((model) => model.default);
  const others = models.filter((model) => model !== own);
  const chosen = draft.model;
  const isListed = chosen === null || models.some(({ id }) => id === chosen);
  const choose = ({ currentTarget: { value } }: { currentTarget: HTMLSelectElement }) =>
    onChange({ model: value === '' ? null : value });
  return html`<select class="model" aria-label="Model" value=${chosen ?? ''} onChange=${choose}>
    <option value="">${own?.name ?? 'Default model'}</option>
    ${others.map(({ id, name }) => html`<option value=${id}>${name}</option>`)}
    ${!isListed && html`<option value=${chosen}>${chosen}</option>`}
  </select>`;
}

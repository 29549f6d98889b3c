import type { ModelList } from '../../shared/api/models.js';
import { html } from '../ui/html.mjs';
import { useLoad } from '../use-load.mjs';
import type { ComposerProps } from './composer.mjs';

/** Nothing to choose from until the list is there: then the service asks its default model. */
export function ModelChoice({ draft, onChange }: Pick<ComposerProps, 'draft' | 'onChange'>) {
  const [list] = useLoad<ModelList>('/models');
  const models = list.state === 'ready' ? list.value.models : [];
  const own = models.find((model) => model.default);
  const choose = ({ currentTarget: { value } }: { currentTarget: HTMLSelectElement }) =>
    onChange({ model: value === '' ? null : value });
  return html`<select class="model" aria-label="Model" value=${draft.model ?? ''} onChange=${choose}>
    <option value="">${own?.name ?? 'Default model'}</option>
    ${models.filter((model) => model !== own).map(({ id, name }) => html`<option value=${id}>${name}</option>`)}
  </select>`;
}

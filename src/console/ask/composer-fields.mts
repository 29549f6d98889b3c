import { hrefOf } from '../base/router.mjs';
import { Field } from '../ui/controls.mjs';
import { html } from '../ui/html.mjs';
import { ErrorNotice } from '../ui/notices.mjs';
import type { ComposerProps } from './composer.mjs';
import { readSchema, takesEffort } from './draft.mjs';
import type { BackgroundSending } from './sending.mjs';
import { type ChosenEffort, efforts } from './turn.mjs';

type FieldsProps = Pick<ComposerProps, 'draft' | 'onChange' | 'model' | 'hasBegun' | 'system' | 'background'> &
  BackgroundProps;

interface Typed {
  readonly currentTarget: HTMLTextAreaElement | HTMLSelectElement;
}

/** What few messages need: system text, effort, the schema of the answer. */
export function ComposerFields(props: FieldsProps) {
  const { draft, onChange, model, hasBegun, system } = props;
  const schema = readSchema(draft.schemaText);
  const fault = schema.kind === 'fault' ? schema.message : undefined;
  const hint = hasBegun ? 'Set by the first message of this conversation.' : 'For the whole conversation.';
  const set = (name: 'system' | 'schemaText') => (event: Typed) => onChange({ [name]: event.currentTarget.value });
  const setEffort = ({ currentTarget: { value } }: Typed) => onChange({ effort: (value as ChosenEffort) || null });
  return html`<div class="fields">
    <${Field} label="System text" hint=${hint}>
      <textarea rows="2" value=${hasBegun ? (system ?? '') : draft.system} disabled=${hasBegun} onInput=${set('system')} />
    <//>
    <${Field} label="JSON Schema of the answer" hint="The answer is then a value that fits it." error=${fault}>
      <textarea rows="2" class="mono" data-field="schema" spellcheck=${false} value=${draft.schemaText} onInput=${set('schemaText')} />
    <//>
    ${
      takesEffort(model) &&
      html`<${Field} label="Effort" hint="How hard the model is to think.">
        <select value=${draft.effort ?? ''} onChange=${setEffort}>
          <option value="">As the model does</option>
          ${efforts.map((effort) => html`<option value=${effort}>${effort}</option>`)}
        </select>
      <//>`
    }
    <${InBackground} ...${props} />
  </div>`;
}

interface BackgroundProps {
  readonly background: BackgroundSending;
  readonly onBackground: () => void;
}

function InBackground({ background: { isSending, failure }, onBackground }: BackgroundProps) {
  const label = isSending ? 'Sending …' : 'Ask in the background';
  return html`<div class="field">
    <button type="button" class="button" disabled=${isSending} onClick=${onBackground}>${label}</button>
    <small class="muted">The job goes on when you leave. Its answer is kept with the <a href=${hrefOf('jobs')}>background jobs</a>.</small>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
  </div>`;
}

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

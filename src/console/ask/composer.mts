import { html } from 'htm/preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ModelEntry } from '../../shared/api/models.js';
import { Field, Icon, type IconName } from '../ui/controls.mjs';
import { ErrorNotice } from '../ui/notices.mjs';
import { type BackgroundSending, type Draft, type ReadDraft, readSchema, takesEffort, useSending } from './draft.mjs';
import { FileFaults, FileStrip, pasteFiles, useDrop, useFileDialog, useFiles } from './images.mjs';
import type { Steering } from './steering.mjs';
import { type ChosenEffort, efforts, fileNaming, type UserMessage } from './turn.mjs';

export interface ComposerProps {
  readonly draft: Draft;
  readonly onChange: (change: Partial<Draft>) => void;
  /** Draft as a message to the selected model, or its fault. */
  readonly read: ReadDraft;
  readonly models: readonly ModelEntry[];
  /** Selected model; undefined if it is not listed. */
  readonly model: ModelEntry | undefined;
  readonly isBusy: boolean;
  readonly areOptionsOpen: boolean;
  readonly onOptions: (areOpen: boolean) => void;
  readonly onSend: (message: UserMessage) => void;
  readonly background: BackgroundSending;
  readonly steering: Steering;
  readonly onStop: () => void;
  readonly onSnippet: () => void;
  /** Whether the conversation has a stored turn: its system text is then fixed. */
  readonly hasBegun: boolean;
  readonly system: string | null;
}

/** Shows the form for a message and its options. */
export function Composer(props: ComposerProps) {
  const { draft, read, onChange, onSend, isBusy, model, areOptionsOpen: isOpen, onOptions: setOpen } = props;
  const setFiles = (images: Draft['images']) => onChange({ images });
  const [addFiles, faults] = useFiles({ files: draft.images, model, selection: draft.model, onChange: setFiles });
  const [why, tryToSend] = useSending(draft, read, () => setOpen(true));
  const send = (event: Event) => {
    event.preventDefault();
    if (isBusy) return props.steering.send(draft.text);
    tryToSend((message) => {
      setOpen(false);
      onSend(message);
    });
  };
  return html`<form class="composer" onSubmit=${send} ...${useDrop(addFiles)}>
    <${FileStrip} files=${draft.images} onRemove=${removeFrom(draft, onChange)} />
    <${FileFaults} faults=${faults} />
    ${isOpen ? html`<${ComposerFields} ...${props}/>` : html`<${Chips} ...${props} />`}
    <textarea
      ref=${useFocusAtFirst()}
      aria-label="Message"
      data-field="text"
      rows="1"
      placeholder="Ask something"
      value=${draft.text}
      onInput=${({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => onChange({ text: currentTarget.value })}
      onKeyDown=${sendByEnter}
      onPaste=${pasteFiles(addFiles)}
    />
    ${props.background.failure !== null && html`<${ErrorNotice} error=${props.background.failure} naming=${fileNaming(draft.images)} />`}
    ${props.steering.failure !== null && html`<${ErrorNotice} error=${props.steering.failure} />`}
    ${props.steering.note !== null && html`<p class="muted" role="status">${props.steering.note}</p>`}
    ${why !== null && html`<p class="fault why" id="composer-why" role="alert">${why}</p>`}
    <${Tools} ...${props} isBlocked=${why !== null} onBackground=${() => tryToSend(props.background.send)} addFiles=${addFiles} />
  </form>`;
}

/** Focuses the field at first, but only on devices with a mouse: on a phone, the keyboard would cover the page. */
function useFocusAtFirst() {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (matchMedia('(pointer: fine)').matches) field.current?.focus({ preventScroll: true });
  }, []);
  return field;
}

/** Sends on Enter; Shift+Enter starts a new line. While an input method composes a word, Enter completes the word. */
function sendByEnter(event: KeyboardEvent): void {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  (event.currentTarget as HTMLTextAreaElement).form?.requestSubmit();
}

function removeFrom({ images }: Draft, onChange: ComposerProps['onChange']) {
  return (removed: Draft['images'][number]) => onChange({ images: images.filter((image) => image !== removed) });
}

interface ToolsProps extends ComposerProps {
  readonly addFiles: ReturnType<typeof useFiles>[0];
  readonly isBlocked: boolean;
  readonly onBackground: () => void;
}

function Tools(props: ToolsProps) {
  const { draft, model, isBusy, isBlocked, onStop, onSnippet, addFiles, areOptionsOpen: isOpen } = props;
  const [fileInput, chooseFiles] = useFileDialog(addFiles, model);
  const count = optionsOf(draft, model);
  return html`<div class="row tools">
    ${fileInput}
    <${ModelChoice} ...${props} />
    <${Tool} icon="options" word=${count === 0 ? 'Options' : `Options (${count})`} isSet=${count > 0} isOpen=${isOpen} onPress=${() => props.onOptions(!isOpen)} />
    <${Tool} icon="page" word="File" onPress=${chooseFiles} />
    <${Tool} icon="code" word="Code" onPress=${onSnippet} />
    <div class="row last" data-focus="[data-field=text]">
      ${
        isBusy
          ? html`
              ${draft.text.trim() !== '' && html`<button key="next" class="button" disabled=${props.steering.isSending}>Send next</button>`}
              <button key="stop" type="button" class="button primary" onClick=${onStop}>Stop</button>
            `
          : html`
              <${Tool} icon="clock" word="Ask in the background" isBusy=${props.background.isSending} onPress=${props.onBackground} />
              <button key="send" class="button primary" aria-describedby=${isBlocked ? 'composer-why' : undefined}>Send</button>
            `
      }
    </div>
  </div>`;
}

/** Shows the options of the next message while their fields are closed. */
function Chips({ draft, onChange, model, hasBegun }: FieldsProps) {
  const { system, schemaText, effort } = draft;
  const chips = [
    [!hasBegun && system.trim() !== '', 'System text', { system: '' }],
    [schemaText.trim() !== '', 'JSON Schema', { schemaText: '' }],
    [effort !== null && takesEffort(model), `Effort: ${effort}`, { effort: null }],
  ] as const;
  const set = chips.filter(([isSet]) => isSet);
  if (set.length === 0) return null;
  return html`<div class="row chips" data-focus="[data-field=text]" role="group" aria-label="Options that are set">
    ${set.map(([, word, change]) => html`<button key=${word} type="button" class="button small set" aria-label=${`Remove: ${word}`} onClick=${() => onChange(change)}>${word}<${Icon} name="close" /></button>`)}
  </div>`;
}

/** Counts the options that are set. Their fields are usually hidden. */
function optionsOf({ system, effort, schemaText }: Draft, model: ComposerProps['model']): number {
  return [system.trim() !== '', effort !== null && takesEffort(model), schemaText.trim() !== ''].filter(Boolean).length;
}

interface ToolProps {
  readonly icon: IconName;
  readonly word: string;
  readonly onPress: () => void;
  readonly isOpen?: boolean;
  readonly isSet?: boolean;
  readonly isBusy?: boolean;
}

/** Button with an icon and a word. A narrow page shows only the icon. */
function Tool({ icon, word, onPress, isOpen, isSet = false, isBusy = false }: ToolProps) {
  const kind = `button quiet tool${isSet ? ' set' : ''}`;
  return html`<button type="button" class=${kind} title=${word} aria-expanded=${isOpen} disabled=${isBusy} onClick=${onPress}>
    <${Icon} name=${icon} /><span>${word}</span>
  </button>`;
}

type FieldsProps = Pick<ComposerProps, 'draft' | 'onChange' | 'model' | 'hasBegun' | 'system'>;

interface Typed {
  readonly currentTarget: HTMLTextAreaElement | HTMLSelectElement;
}

/** Shows the fields of the options: system text, effort, and the JSON Schema for the answer. */
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
    <${Field} label="Answer format (JSON Schema)" hint="The answer will be JSON that matches this schema." error=${fault}>
      <textarea rows="2" class="mono" data-field="schema" spellcheck=${false} value=${draft.schemaText} onInput=${set('schemaText')} />
    <//>
    ${
      takesEffort(model) &&
      html`<${Field} label="Effort" hint="How much the model should think.">
        <select value=${draft.effort ?? ''} onChange=${setEffort}>
          <option value="">Default</option>
          ${efforts.map((effort) => html`<option value=${effort}>${effort}</option>`)}
        </select>
      <//>`
    }
  </div>`;
}

type ChoiceProps = Pick<ComposerProps, 'draft' | 'onChange' | 'models'>;

/** Select for the model. Before the list is loaded, the default model can be chosen, or an earlier selection. */
export function ModelChoice({ draft, onChange, models }: ChoiceProps) {
  const defaultModel = models.find((model) => model.default);
  const otherModels = models.filter((model) => model !== defaultModel);
  const chosen = draft.model;
  const isListed = chosen === null || models.some(({ id }) => id === chosen);
  const choose = ({ currentTarget: { value } }: { currentTarget: HTMLSelectElement }) =>
    onChange({ model: value === '' ? null : value });
  return html`<select class="model" aria-label="Model" value=${chosen ?? ''} onChange=${choose}>
    <option value="">${defaultModel === undefined ? 'Default model' : defaultModel.name}</option>
    ${otherModels.map((model) => html`<option value=${model.id}>${model.name}</option>`)}
    ${!isListed && html`<option value=${chosen}>${chosen}</option>`}
  </select>`;
}

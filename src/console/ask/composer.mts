import { useEffect, useRef, useState } from 'preact/hooks';
import type { ModelEntry } from '../../shared/api/models.js';
import { Icon, type IconName } from '../ui/controls.mjs';
import { html } from '../ui/html.mjs';
import { ComposerFields, ModelChoice } from './composer-fields.mjs';
import { type Draft, noImages, type ReadDraft, takesEffort, takesImages } from './draft.mjs';
import { ImageStrip, imageTypesText, readImages, tooMany } from './images.mjs';
import { type BackgroundSending, useSending } from './sending.mjs';
import type { UserMessage } from './turn.mjs';

export interface ComposerProps {
  readonly draft: Draft;
  readonly onChange: (change: Partial<Draft>) => void;
  /** What the draft is, as a message to the model that is chosen. */
  readonly read: ReadDraft;
  readonly models: readonly ModelEntry[];
  /** The one that is chosen, where it is listed. */
  readonly model: ModelEntry | undefined;
  readonly isBusy: boolean;
  readonly onSend: (message: UserMessage) => void;
  readonly background: BackgroundSending;
  readonly onStop: () => void;
  readonly onSnippet: () => void;
  /** Set once the conversation has begun: then its system text stays. */
  readonly hasBegun: boolean;
  readonly system: string | null;
  /** null: there is nothing to leave. */
  readonly onNew: (() => void) | null;
}

/** Where a message is written, with all that may go with it. */
export function Composer(props: ComposerProps) {
  const { draft, read, onChange, onSend, isBusy, model } = props;
  const [isOpen, setOpen] = useState(false);
  const [addImages, faults] = useImages(draft, onChange, model);
  const [why, tryToSend] = useSending(draft, read, () => setOpen(true));
  const send = (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    tryToSend((message) => {
      setOpen(false);
      onSend(message);
    });
  };
  const paste = (event: ClipboardEvent) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    addImages(files);
  };
  return html`<form class="composer" onSubmit=${send} ...${useDrop(addImages)}>
    <${ImageStrip} images=${draft.images} onRemove=${removeFrom(draft, onChange)} />
    <div role="alert">${faults.map((fault) => html`<p class="fault">${fault}</p>`)}</div>
    ${isOpen && html`<${ComposerFields} ...${props} onBackground=${() => tryToSend(props.background.send)} />`}
    <textarea
      ref=${useFocusAtFirst()}
      aria-label="Message"
      data-field="text"
      rows="1"
      placeholder="Ask something"
      value=${draft.text}
      onInput=${({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => onChange({ text: currentTarget.value })}
      onKeyDown=${sendByEnter}
      onPaste=${paste}
    />
    ${why !== null && html`<p class="fault why" id="composer-why" role="alert">${why}</p>`}
    <${Tools} ...${props} isBlocked=${why !== null} addImages=${addImages} isOpen=${isOpen} onToggle=${() => setOpen(!isOpen)} />
  </form>`;
}

/** Where there is a keyboard: else one would be drawn over the page. */
function useFocusAtFirst() {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (matchMedia('(pointer: fine)').matches) field.current?.focus({ preventScroll: true });
  }, []);
  return field;
}

/** Enter sends, with Shift it is a new line. While a word is being composed it belongs to the input method. */
function sendByEnter(event: KeyboardEvent): void {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  (event.currentTarget as HTMLTextAreaElement).form?.requestSubmit();
}

type AddImages = (files: readonly File[]) => void;

function useImages(
  draft: Draft,
  onChange: ComposerProps['onChange'],
  model: ComposerProps['model'],
): [AddImages, readonly string[]] {
  const [faults, setFaults] = useState<readonly string[]>([]);
  const current = useRef(draft.images);
  current.current = draft.images;
  useEffect(() => setFaults([]), [draft.model]); // not when the list of models arrives
  const add = async (files: readonly File[]) => {
    if (!takesImages(model)) return setFaults([noImages(model)]);
    const { images, faults: unreadable } = await readImages(files);
    const all = [...current.current, ...images];
    const fault = tooMany(all);
    setFaults(fault === null ? unreadable : [...unreadable, fault]);
    if (fault === null) onChange({ images: all });
  };
  return [(files) => void add(files), faults];
}

function removeFrom({ images }: Draft, onChange: ComposerProps['onChange']) {
  return (removed: Draft['images'][number]) => onChange({ images: images.filter((image) => image !== removed) });
}

/** Takes what is dropped; the browser would open it in place of the page. */
function useDrop(addImages: AddImages) {
  const [isOver, setOver] = useState(false);
  return {
    'data-drop': isOver ? '' : undefined,
    onDragOver: (event: DragEvent) => {
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      addImages([...(event.dataTransfer?.files ?? [])]);
    },
  };
}

interface ToolsProps extends ComposerProps {
  readonly addImages: AddImages;
  readonly isBlocked: boolean;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

function Tools(props: ToolsProps) {
  const { draft, model, isBusy, isBlocked, onStop, onSnippet, onNew, addImages, isOpen, onToggle } = props;
  const files = useRef<HTMLInputElement>(null);
  const choose = () => {
    addImages([...(files.current?.files ?? [])]);
    if (files.current) files.current.value = ''; // so that the same file can be chosen again
  };
  const count = optionsOf(draft, model);
  return html`<div class="row tools">
    <input ref=${files} type="file" accept=${imageTypesText} multiple hidden onChange=${choose} />
    <${ModelChoice} ...${props} />
    <${Tool} icon="options" word=${count === 0 ? 'Options' : `Options (${count})`} isSet=${count > 0} isOpen=${isOpen} onPress=${onToggle} />
    ${takesImages(model) && html`<${Tool} icon="image" word="Image" onPress=${() => files.current?.click()} />`}
    <${Tool} icon="code" word="Code" onPress=${onSnippet} />
    ${onNew && html`<${Tool} icon="plus" word="New" onPress=${onNew} />`}
    ${
      isBusy
        ? html`<button key="stop" type="button" class="button primary last" onClick=${onStop}>Stop</button>`
        : html`<button key="send" class="button primary last" aria-describedby=${isBlocked ? 'composer-why' : undefined}>Send</button>`
    }
  </div>`;
}

/** How many options go with the message, so that none is forgotten where they are not shown. */
function optionsOf({ system, effort, schemaText }: Draft, model: ComposerProps['model']): number {
  return [system.trim() !== '', effort !== null && takesEffort(model), schemaText.trim() !== ''].filter(Boolean).length;
}

interface ToolProps {
  readonly icon: IconName;
  readonly word: string;
  readonly onPress: () => void;
  readonly isOpen?: boolean;
  readonly isSet?: boolean;
}

/** The word is not shown where there is no room for it. */
function Tool({ icon, word, onPress, isOpen, isSet = false }: ToolProps) {
  const kind = `button quiet tool${isSet ? ' set' : ''}`;
  return html`<button type="button" class=${kind} title=${word} aria-expanded=${isOpen} onClick=${onPress}>
    <${Icon} name=${icon} /><span>${word}</span>
  </button>`;
}

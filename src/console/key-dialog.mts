import { useRef } from 'preact/hooks';
import { useParts } from './context.mjs';
import { useValue } from './observable.mjs';
import { Dialog } from './ui/dialog.mjs';
import { Field } from './ui/field.mjs';
import { html } from './ui/html.mjs';

/** Asks for the API key, once a request has been refused for want of one. */
export function KeyDialog() {
  const { keys } = useParts();
  const question = useValue(keys.question);
  const input = useRef<HTMLInputElement>(null);
  if (question === 'none') return null;
  const enter = (event: Event) => {
    event.preventDefault();
    const key = input.current?.value.trim() ?? '';
    if (key !== '') keys.enter(key);
  };
  const error = question === 'again' ? 'The service refuses this key.' : undefined;
  return html`<${Dialog} title="API key" onClose=${() => keys.dismiss()}>
    <p>This service answers only with a key. Whoever runs it can make one for you.</p>
    <form onSubmit=${enter}>
      <${Field} label="Your key" hint="Kept in this browser tab, until it is closed." error=${error}>
        <input ref=${input} type="password" autofocus autocomplete="off" spellcheck=${false} required />
      <//>
      <div class="row end">
        <button type="button" class="button quiet" onClick=${() => keys.dismiss()}>Not now</button>
        <button class="button primary">Continue</button>
      </div>
    </form>
  <//>`;
}

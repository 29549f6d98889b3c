import type { VersionBody } from '../shared/api/version.js';
import { useParts } from './context.mjs';
import { useValue } from './observable.mjs';
import { html } from './ui/html.mjs';
import { useLoad } from './use-load.mjs';

/** Which service this is, and the way to its documents. */
export function Footer() {
  const { keys, memory } = useParts();
  const [version] = useLoad<VersionBody>('/version');
  const hasKey = useValue(keys.hasKey);
  const forget = () => {
    keys.forget();
    memory.forget();
    location.reload();
  };
  return html`<footer class="bottom">
    ${version.state === 'ready' && html`<span>${nameOf(version.value)}</span>`}
    <a href="../docs/">API</a>
    ${hasKey && html`<button class="link" onClick=${forget}>Forget the key</button>`}
  </footer>`;
}

function nameOf({ version, model_cli: cli }: VersionBody): string {
  return `prompt-relay ${version} · ${[cli.adapter, cli.version].filter(Boolean).join(' ')}`;
}

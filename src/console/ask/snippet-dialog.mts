import { useState } from 'preact/hooks';
import { CodeBlock } from '../ui/code-block.mjs';
import { Dialog } from '../ui/dialog.mjs';
import { html } from '../ui/html.mjs';
import { type Language, languages, type SnippetRequest, snippetOf } from './snippets.mjs';

interface SnippetDialogProps {
  readonly request: SnippetRequest;
  readonly onClose: () => void;
}

/** The request as it would be sent now, for a program to send. */
export function SnippetDialog({ request, onClose }: SnippetDialogProps) {
  const [language, setLanguage] = useState<Language>('curl');
  return html`<${Dialog} title="The same from a program" isWide onClose=${onClose}>
    <div class="row" role="group" aria-label="Language">
      ${languages.map(
        (name) => html`<button
          type="button"
          class="button quiet small"
          aria-pressed=${name === language}
          onClick=${() => setLanguage(name)}
        >${name}</button>`,
      )}
    </div>
    <${CodeBlock} code=${snippetOf(language, request)} language=${language} />
    ${request.needsKey && html`<p class="muted"><small>It takes the API key from the variable MODEL_API_KEY.</small></p>`}
  <//>`;
}

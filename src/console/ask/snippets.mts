import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { shellQuoted } from '../base/format.mjs';
import { CodeBlock, Dialog } from '../ui/controls.mjs';
import type { ChatBody } from './turn.mjs';

/** Request for which code is shown. The key is never part of it: the code reads it from the environment. */
interface SnippetRequest {
  /** URL of POST /chat. */
  readonly url: string;
  readonly body: ChatBody;
  readonly needsKey: boolean;
}

/** Languages of the code. The first one is shown first. */
export const languages = ['OpenAI SDK', 'curl', 'Python', 'JavaScript'] as const;
export type Language = (typeof languages)[number];

export function snippetOf(language: Language, request: SnippetRequest): string {
  return writers[language](request);
}

const writers: Readonly<Record<Language, (request: SnippetRequest) => string>> = {
  'OpenAI SDK': openAiOf,
  curl: curlOf,
  Python: pythonOf,
  JavaScript: javaScriptOf,
};

/**
 * Writes code for the Python package `openai`. The API of OpenAI has no conversations: the code sends the message
 * alone.
 */
function openAiOf({ url, body, needsKey }: SnippetRequest): string {
  const { message, system, model = 'default', effort, schema, images = [], files = [] } = body as Partial<SnippetBody>;
  const documents = files.map(({ name, media_type: type, data }) => ({
    type: 'file',
    file: { filename: name, file_data: `data:${type};base64,${data}` },
  }));
  const shown = images.map(({ media_type: type, data }) => ({
    type: 'image_url',
    image_url: { url: `data:${type};base64,${data}` },
  }));
  const attached = [...shown, ...documents];
  const content = attached.length === 0 ? message : [{ type: 'text', text: message }, ...attached];
  const messages = [...(system === undefined ? [] : [{ role: 'system', content: system }]), { role: 'user', content }];
  const more = {
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(schema !== undefined && { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }),
  };
  const fields = Object.entries({ model, messages: messages, ...more });
  const lines = fields.map(([name, value]) => `    ${name}=${pythonLiteral(value, '    ')},\n`).join('');
  return `${needsKey ? 'import os\n' : ''}from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(url.replace(/chat$/, 'v1'))}, api_key=${needsKey ? 'os.environ["MODEL_API_KEY"]' : '"any"'})
answer = client.chat.completions.create(
${lines})
print(answer.choices[0].message.content)
`;
}

interface SnippetBody {
  readonly message: string;
  readonly system: string;
  readonly model: string;
  readonly effort: string;
  readonly schema: object;
  readonly images: readonly { readonly media_type: string; readonly data: string }[];
  readonly files: readonly { readonly name: string; readonly media_type: string; readonly data: string }[];
}

/**
 * Writes a curl command with the body in a here-document. Its delimiter is quoted, so the shell expands nothing. No
 * line of the body can be the delimiter: JSON strings contain no line breaks.
 */
function curlOf({ url, body, needsKey }: SnippetRequest): string {
  const key = needsKey ? ` \\\n  -H "X-API-Key: $MODEL_API_KEY"` : '';
  const head = `curl -sS ${shellQuoted(url)} \\\n  -H 'Content-Type: application/json'${key}`;
  return `${head} \\\n  --data-binary @- <<'JSON'\n${JSON.stringify(body, null, 2)}\nJSON\n`;
}

function pythonOf({ url, body, needsKey }: SnippetRequest): string {
  const key = needsKey ? ', "X-API-Key": os.environ["MODEL_API_KEY"]' : '';
  return `import json${needsKey ? ', os' : ''}, urllib.request

request = urllib.request.Request(
    ${JSON.stringify(url)},
    data=json.dumps(${indented(pythonLiteral(body), '    ')}).encode(),
    headers={"Content-Type": "application/json"${key}},
)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer)["response"])
`;
}

/** Writes a JSON value as Python. Strings are the same in both, `null`, `true` and `false` are not. */
function pythonLiteral(value: unknown, indent = ''): string {
  const inner = `${indent}    `;
  const lines = (items: readonly string[]) => items.map((item) => `\n${inner}${item},`).join('');
  if (Array.isArray(value)) return `[${lines(value.map((item) => pythonLiteral(item, inner)))}\n${indent}]`;
  if (typeof value === 'object' && value !== null) {
    const items = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${pythonLiteral(item, inner)}`);
    return `{${lines(items)}\n${indent}}`;
  }
  return typeof value === 'string' ? JSON.stringify(value) : (pythonWords[String(value)] ?? String(value));
}

const pythonWords: Readonly<Record<string, string>> = { null: 'None', true: 'True', false: 'False' };

/**
 * Writes a JSON value as JavaScript. A plain `"__proto__"` key would set the prototype, so it is written as a computed
 * key. Inside a string, the quotes are escaped and do not match.
 */
function javaScriptLiteral(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll('"__proto__":', '["__proto__"]:');
}

const keyInNode = 'process.env.MODEL_API_KEY';

function javaScriptOf({ url, body, needsKey }: SnippetRequest): string {
  const key = needsKey ? `, 'X-API-Key': ${keyInNode}` : '';
  return `const answer = await fetch(${JSON.stringify(url)}, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json'${key} },
  body: JSON.stringify(${indented(javaScriptLiteral(body), '  ')}),
});
const { response } = await answer.json();
console.log(response);
`;
}

function indented(text: string, indent: string): string {
  return text.replaceAll('\n', `\n${indent}`);
}

interface SnippetDialogProps {
  readonly request: SnippetRequest;
  readonly onClose: () => void;
}

/** Shows code that sends the current request. */
export function SnippetDialog({ request, onClose }: SnippetDialogProps) {
  const [language, setLanguage] = useState<Language>(languages[0]);
  return html`<${Dialog} title="Code" isWide onClose=${onClose}>
    <div class="row languages" role="group" aria-label="Language">
      ${languages.map(
        (name) => html`<button
          type="button"
          class="button quiet small"
          aria-pressed=${name === language}
          onClick=${() => setLanguage(name)}
        >${name}</button>`,
      )}
    </div>
    <${CodeBlock} code=${snippetOf(language, request)} language=${language === 'OpenAI SDK' ? 'Python' : language} />
    ${language === 'OpenAI SDK' && html`<p class="muted"><small>This sends one message. To continue, send the earlier messages too.</small></p>`}
    ${request.needsKey && html`<p class="muted"><small>Set MODEL_API_KEY to your API key first.</small></p>`}
  <//>`;
}

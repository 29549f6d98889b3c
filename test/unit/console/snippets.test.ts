import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../support/basics/folder.js';
import { consolePart } from '../../support/clients/console-parts.js';
import { system, textPart, user } from '../../support/doors/sdk-messages.js';

const run = promisify(execFile);

interface Snippets {
  snippetOf(language: string, request: { url: string; body: object; needsKey: boolean }): string;
}

const parts = consolePart<Snippets>('ask/snippets.mjs');
const key = `a "key" with $HOME and 'quotes'`;

/** Server that records requests, and answers each. */
class Recorder implements AsyncDisposable {
  readonly bodies: unknown[] = [];
  readonly keys: (string | undefined)[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((req, res) => void this.#keep(req).then(() => res.end('{"response":"Hello"}')));
  }

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/it's/$HOME/chat`;
  }

  async #keep(req: IncomingMessage): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    this.bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
    this.keys.push(req.headers['x-api-key'] as string | undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function isThere(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const programs: Readonly<Record<string, readonly [program: string, file: string]>> = {
  curl: ['sh', 'snippet.sh'],
  Python: ['python3', 'snippet.py'],
  JavaScript: [process.execPath, 'snippet.mjs'],
};

const texts = [
  `it's "quoted" \\ and \\\\ \`back\` $(touch x) \${HOME} $HOME !! !echo %s %n ~ * ?`,
  "'; touch x; '",
  '\nJSON\n\nJSON',
  'line\r\nline\ttab\u0001\u007f\u2028\u2029',
  'Grüße 🙂 漢字 \u202e',
  `{{x}} ${'$'}{y} {z} #{a} </script> <!-- -->`,
  '"""\' \'\'\' r"x" \\N{BULLET} \\x41 \\u0041',
  'x'.repeat(200_000), // longer than one argument of a program may be
];

const properties = { __proto__x: { const: null }, 'a"b': { enum: [true, false, null, 1.5] } };
const schema = { type: 'object', properties };
const env = { PATH: process.env.PATH, MODEL_API_KEY: key };

describe.each(Object.entries(programs))('The snippet for %s', (language, [program, file]) => {
  const itRuns = language === 'curl' || isThere(program) ? it : it.skip;

  itRuns('sends any request unchanged, with the key from the environment only', async () => {
    await using recorder = new Recorder();
    await using folder = await temporaryFolder();
    const url = await recorder.open();
    const { snippetOf } = await parts;
    const proto = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}') as object;
    const bodies = [
      { message: 'Hello', schema: proto },
      { message: texts.join('\n'), texts, schema },
    ];
    for (const body of bodies) {
      const snippet = snippetOf(language, { url: encodeURI(url), body, needsKey: true });
      expect(snippet).not.toContain(key);
      await writeFile(join(folder.path, file), snippet);
      expect((await run(program, [file], { cwd: folder.path, env })).stdout).toContain('Hello');
    }
    expect(recorder.bodies.map((body) => JSON.stringify(body))).toEqual(bodies.map((body) => JSON.stringify(body)));
    expect(new Set(recorder.keys)).toEqual(new Set([key]));
    expect((await run('ls', ['-A'], { cwd: folder.path })).stdout.trim()).toBe(file);
  });

  it('names no key if none is required', async () => {
    const { snippetOf } = await parts;
    const snippet = snippetOf(language, { url: 'http://127.0.0.1/chat', body: { message: 'Hello' }, needsKey: false });
    expect(snippet).not.toMatch(/API.KEY/i);
  });
});

/** Stand-in for the SDK that prints the arguments of its calls. */
const sdk = `import json
class Fields:
    def __init__(self, **fields): self.__dict__.update(fields)
class OpenAI:
    def __init__(self, **options): self.chat = Fields(completions=Fields(create=lambda **fields: answer(options, fields)))
def answer(options, fields):
    with open("asked.json", "w") as file: json.dump({**options, **fields}, file)
    return Fields(choices=[Fields(message=Fields(content="Hello"))])
`;

describe('The snippet for the OpenAI SDK', () => {
  const itRuns = isThere('python3') ? it : it.skip;

  itRuns('sends any message unchanged with all of its fields', async () => {
    await using folder = await temporaryFolder();
    const { snippetOf } = await parts;
    const message = texts.join('\n');
    const images = [{ media_type: 'image/png', data: 'AAAA' }];
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    const files = [{ name: 'a.pdf', media_type: 'application/pdf', data: 'AAAA' }];
    const file = { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } };
    const body = { message, system: 'Be "brief".', model: 'echo', effort: 'low', schema, images, files };
    const snippet = snippetOf('OpenAI SDK', { url: "http://127.0.0.1/it's/chat", body, needsKey: true });
    expect(snippet).not.toContain(key);
    await writeFile(join(folder.path, 'openai.py'), sdk);
    await writeFile(join(folder.path, 'snippet.py'), snippet);
    const { stdout } = await run('python3', ['snippet.py'], { cwd: folder.path, env });
    expect(stdout).toBe('Hello\n');
    expect(JSON.parse(await readFile(join(folder.path, 'asked.json'), 'utf8'))).toEqual({
      base_url: "http://127.0.0.1/it's/v1",
      api_key: key,
      model: 'echo',
      messages: [system('Be "brief".'), user([textPart(message), image, file])],
      reasoning_effort: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
    });
  });

  it('names no key if none is required, and the default model', async () => {
    const { snippetOf } = await parts;
    const request = { url: 'http://127.0.0.1/chat', body: { message: 'Hello' }, needsKey: false };
    expect(snippetOf('OpenAI SDK', request)).not.toContain('MODEL_API_KEY');
    expect(snippetOf('OpenAI SDK', request)).toContain('model="default"');
  });
});

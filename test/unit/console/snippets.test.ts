import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { consolePart } from '../../support/console-parts.js';
import { temporaryFolder } from '../../support/folder.js';

const run = promisify(execFile);

interface Snippets {
  snippetOf(language: string, request: { url: string; body: object; needsKey: boolean }): string;
}

const parts = consolePart<Snippets>('ask/snippets.mjs');
const key = `a "key" with $HOME and 'quotes'`;

/** Keeps the requests that come, and answers each. */
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
  'x'.repeat(200_000), // more than one argument of a program can hold
];

const schema = {
  type: 'object',
  properties: { __proto__x: { const: null }, 'a"b': { enum: [true, false, null, 1.5] } },
};

describe.each(Object.entries(programs))('The snippet for %s', (language, [program, file]) => {
  const itRuns = language === 'curl' || isThere(program) ? it : it.skip;

  itRuns('sends the request, whatever is in it, and the key from the environment alone', async () => {
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
      const { stdout } = await run(program, [file], {
        cwd: folder.path,
        env: { PATH: process.env.PATH, MODEL_API_KEY: key },
      });
      expect(stdout).toContain('Hello');
    }
    expect(recorder.bodies.map((body) => JSON.stringify(body))).toEqual(bodies.map((body) => JSON.stringify(body)));
    expect(new Set(recorder.keys)).toEqual(new Set([key]));
    expect((await run('ls', ['-A'], { cwd: folder.path })).stdout.trim()).toBe(file);
  });

  it('names no key where none is needed', async () => {
    const { snippetOf } = await parts;
    const snippet = snippetOf(language, { url: 'http://127.0.0.1/chat', body: { message: 'Hello' }, needsKey: false });
    expect(snippet).not.toMatch(/API.KEY/i);
  });
});

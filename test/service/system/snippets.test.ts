import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Service, startService, startWithProgram } from '../../support/service.js';
import { root } from '../../support/sources.js';
import { until } from '../../support/until.js';

const run = promisify(execFile);
const page = readFileSync(join(root, 'docs', 'api.md'), 'utf8');
const documentedUrl = 'http://127.0.0.1:5051';

/** What differs from one run to the next. */
const volatile = /^(request_id|queue_ms|duration_ms|conversation_id|job_id|\w+_at)$/;

function withoutVolatile(json: string): unknown {
  return JSON.parse(json, (key, value) => (volatile.test(key) ? undefined : value));
}

/** The commands of the page in their order, each with the answer that stands below it. */
const examples = [...page.matchAll(/^\$ (curl .*)\n(\{.*\})$/gm)].map(
  ([, command = '', answer = '']) => [command, answer] as const,
);

describe('the examples of docs/api.md', () => {
  let service: Service;
  const ids = new Map<string, string>();

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());

  it('are all found', () => {
    expect(examples).toHaveLength(7);
  });

  it.each(examples)('answer as they say: %s', async (command, answer) => {
    const known = [...ids].reduce((text, [shown, real]) => text.replaceAll(shown, real), command);
    const call = () => run('bash', ['-c', known.replaceAll(documentedUrl, service.url)]);
    const whenOver = ({ stdout: body }: { readonly stdout: string }) => (/"status":"running"/.test(body) ? null : body);
    const stdout = await until(async () => whenOver(await call()), 'the answer of a job'); // a reader may be earlier than its end
    expect(withoutVolatile(stdout)).toEqual(withoutVolatile(answer));
    for (const name of ['conversation_id', 'job_id']) {
      const [shown, real] = [answer, stdout].map((json) => (JSON.parse(json) as Record<string, string>)[name]);
      if (shown !== undefined && real !== undefined) ids.set(shown, real);
    }
  });
});

describe('the questions of the README', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const questions = [...readme.matchAll(/^```sh\n(curl .*)\n```/gm)].map(([, command = '']) => command);
  let service: Service;

  beforeAll(async () => {
    service = await startWithProgram('cat'); // no demo: its only model has another name than those of the demo
  });
  afterAll(() => service.stop());

  it('are all found', () => {
    expect(questions.map((command) => new URL(/http\S+/.exec(command)?.[0] ?? '').pathname)).toEqual([
      '/ask',
      '/v1/chat/completions',
    ]);
  });

  it.each(questions)('are answered by whatever model CLI there is: %s', async (command) => {
    const { stdout } = await run('bash', ['-c', `${command.replaceAll(documentedUrl, service.url)} -w '%{http_code}'`]);
    expect(stdout).toMatch(/Hello, my name is Ada.*200$/);
  });
});

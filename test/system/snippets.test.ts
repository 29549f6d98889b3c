import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Service, startService } from '../support/service.js';
import { root } from '../support/sources.js';

const run = promisify(execFile);
const page = readFileSync(join(root, 'docs', 'api.md'), 'utf8');
const documentedUrl = 'http://127.0.0.1:5051';

/** What differs from one run to the next. */
const volatile = /^(request_id|queue_ms|duration_ms|conversation_id|last_activity_at|expires_at)$/;

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
    expect(examples).toHaveLength(4);
  });

  it.each(examples)('answer as they say: %s', async (command, answer) => {
    const known = [...ids].reduce((text, [shown, real]) => text.replaceAll(shown, real), command);
    const { stdout } = await run('bash', ['-c', known.replaceAll(documentedUrl, service.url)]);
    expect(withoutVolatile(stdout)).toEqual(withoutVolatile(answer));
    const { conversation_id: shown } = JSON.parse(answer) as { conversation_id?: string };
    if (shown !== undefined) ids.set(shown, (JSON.parse(stdout) as { conversation_id: string }).conversation_id);
  });
});

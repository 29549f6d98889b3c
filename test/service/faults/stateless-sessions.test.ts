import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { randomNumbers } from '../../support/basics/random.js';
import { assistant, type Said, StatelessClient, user } from '../../support/clients/stateless-client.js';
import { metric } from '../../support/documents/exposition.js';
import { type Service, script, startService, twoWorkers } from '../../support/service/service.js';

const conversations = 300;
const keys = { ada: 'first-key-of-ada', bob: 'second-key-of-bob' };

function start(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const command = script('takes-note.pl');
  return startService({
    env: { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: command, MODEL_API_LIVE_SESSIONS: '4', ...env },
  });
}

describe('A client that sends its conversation with each request', () => {
  it('continues in one process for twenty turns', async () => {
    await using service = await start();
    const client = new StatelessClient(service, keys.ada);
    const sessions: (string | null)[] = [];
    for (let turn = 1; turn <= 20; turn++) sessions.push((await client.say(`turn ${turn}`)).session);
    expect(sessions).toEqual(['replay', ...Array(19).fill('live')]);
    const heard = (await client.say('confess')).content.split('|');
    expect(heard).toEqual([...Array.from({ length: 20 }, (_, index) => `turn ${index + 1}`), 'confess']);
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(20);
  });

  it.each<[string, (said: readonly Said[]) => readonly Said[]]>([
    ['an answer that it has changed', ([first, , ...rest]) => [first as Said, assistant('Noted'), ...rest]],
    ['a question that it has changed', ([, ...rest]) => [user('turn one'), ...rest]],
    ['a system text of its own', (said) => [{ role: 'system', content: 'Be brief.' }, ...said]],
    ['a turn that it has left out', ([, , ...rest]) => rest],
  ])('is replayed into a fresh process with %s', async (_, change) => {
    await using service = await start();
    const client = new StatelessClient(service, keys.ada);
    await client.say('turn 1');
    await client.say('turn 2');
    const changed = new StatelessClient(service, keys.ada, change(client.messages));
    expect((await changed.say('confess')).session).toBe('replay');
    expect((await client.say('turn 3')).session).toBe('live');
  });

  it('continues in its process even if it changes the whitespace of the answers', async () => {
    await using service = await start();
    const client = new StatelessClient(service, keys.ada);
    const { content } = await client.say('blanks');
    expect(content).toBe(' \n\n  noted,\n\n  twice \n');
    client.messages[1] = assistant(content.trim());
    expect((await client.say('turn 2')).session).toBe('live');
    client.messages[1] = assistant(content.replaceAll(/\s+/g, ' '));
    expect((await client.say('turn 3')).session).toBe('live');
    client.messages[1] = assistant(content.replaceAll(/\s+/g, ''));
    expect((await client.say('turn 4')).session).toBe('replay');
  });

  it('never shares a process with another client, though both send the same messages hundreds of times', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    await writeFile(path, `ada ${keys.ada}\nbob ${keys.bob}\n`, { mode: 0o600 });
    await using service = await start({ MODEL_API_KEY_FILE: path, ...twoWorkers });
    const random = randomNumbers(7);
    const sessions = { live: 0, replay: 0 };
    let left = conversations;
    const lane = async () => {
      while (left-- > 0) {
        const [name, key] = random() < 0.5 ? (['ada', keys.ada] as const) : (['bob', keys.bob] as const);
        const client = new StatelessClient(service, key);
        const canary = `canary of ${name} ${left}`;
        const answers = [await client.say('hello'), await client.say('more'), await client.say(canary)];
        const last = await client.say('confess');
        const heard = last.content.split('|').filter((text) => text !== 'noted'); // a replay contains the answers, too
        expect(heard).toEqual(['hello', 'more', canary, 'confess']);
        for (const { session } of [...answers, last]) sessions[session as 'live' | 'replay']++;
      }
    };
    await Promise.all(Array.from({ length: 4 }, lane));
    // Many turns continue in a process, and many find that another turn has taken it.
    expect(sessions.live).toBeGreaterThan(conversations);
    expect(sessions.live + sessions.replay).toBe(4 * conversations);
  }, 240_000);
});

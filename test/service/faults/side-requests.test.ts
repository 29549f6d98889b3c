import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { readReport } from '../../support/agents/reporting-model.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { assistant, type Said, StatelessClient, user } from '../../support/clients/stateless-client.js';
import { metric } from '../../support/documents/exposition.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, script, startService } from '../../support/service/service.js';

const students = ['ada', 'bob', 'cyd', 'dan', 'eve'] as const;
type Student = (typeof students)[number];

interface House extends AsyncDisposable {
  readonly service: Service;
  /** Folder of the files that the model waits for. */
  readonly folder: string;
  of(student: Student, said?: readonly Said[]): StatelessClient;
  headersOf(student: Student): Record<string, string>;
}

/** Starts a service with the default number of live sessions, and a key for each student. */
async function open(env: Readonly<Record<string, string>> = {}): Promise<House> {
  const folder = await temporaryFolder();
  const keyOf = (student: string) => `the-own-key-of-${student}`;
  const path = join(folder.path, 'keys');
  const lines = students.map((student) => `${student}:sha256:${digestOf(keyOf(student))}\n`);
  await writeFile(path, lines.join(''), { mode: 0o600 });
  const program = {
    MODEL_API_CLI: 'demo',
    MODEL_API_CLI_COMMAND: script('converses.pl'),
    MODEL_API_LIVE_SESSIONS: '4',
  };
  const service = await startService({ env: { ...program, MODEL_API_KEYS_FILE: path, ...env } });
  return {
    service,
    folder: folder.path,
    headersOf: (student) => ({ 'x-api-key': keyOf(student) }),
    of: (student, said) => new StatelessClient(service, keyOf(student), said),
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Sends the request that Open WebUI sends right after an answer: one message that contains the conversation. */
async function askAside(client: StatelessClient): Promise<void> {
  const said = JSON.stringify(client.messages);
  for (const wanted of ['follow-up questions', 'a title', 'tags', 'an emoji'])
    await client.aside([user(`### Task:\nSuggest ${wanted} for the chat.\n<chat_history>${said}</chat_history>`)]);
}

/** Sends the first requests of opencode: one for a title, and before its answer, one for the chat. */
async function beginWithTitle({ service, folder, of }: House, student: Student) {
  const client = of(student);
  const [title, answer] = [join(folder, `title-of-${student}`), join(folder, `answer-of-${student}`)];
  const titled = client.aside([user(`wait ${title} and generate a title for this conversation`)]);
  await untilJobs(service, 1, 0);
  const answered = client.say(`wait ${answer}`);
  await untilJobs(service, 2, 0);
  await writeFile(title, '');
  await titled;
  await writeFile(answer, '');
  await answered;
  return client;
}

describe('The process of a conversation whose history the client sends', () => {
  it('survives four side requests of Open WebUI', async () => {
    await using house = await open();
    const client = house.of('ada');
    await client.say('Hello');
    await askAside(client);
    for (let turn = 2; turn <= 4; turn++) {
      expect((await client.say(`turn ${turn}`)).session).toBe('live');
      await askAside(client);
    }
    expect(await metric(house.service, 'live_session_total{result="hit"}')).toBe(3);
  });

  it('survives the side requests of four users with interleaved turns', async () => {
    await using house = await open();
    const clients = [house.of('ada'), house.of('bob'), house.of('cyd'), house.of('dan')];
    for (const client of clients) {
      await client.say('Hello');
      await askAside(client);
    }
    for (const turn of [2, 3]) {
      for (const client of clients) {
        expect((await client.say(`turn ${turn}`)).session).toBe('live');
        await askAside(client);
      }
    }
  });

  it('survives the title requests that opencode sends first', async () => {
    await using house = await open();
    const clients: StatelessClient[] = [];
    for (const student of students.slice(0, 4)) clients.push(await beginWithTitle(house, student));
    for (const client of clients) expect((await client.say('And then?')).session).toBe('live');
  });

  it('survives the side requests of qwen with the whole conversation', async () => {
    await using house = await open();
    const context = [user('This is the context of our chat.'), assistant('Got it.')];
    const [ada, bob] = [house.of('ada', context), house.of('bob', context)];
    await ada.say('Hello');
    expect((await ada.say('And then?')).session).toBe('live');
    for (let turn = 1; turn <= 5; turn++) {
      await bob.say(`turn ${turn}`);
      const keeper: Said = { role: 'system', content: 'You keep the memory.' };
      await bob.aside([keeper, ...bob.messages, user('Update the memory.')]);
    }
    expect((await ada.say('Still there?')).session).toBe('live');
    expect((await bob.say('And I?')).session).toBe('live');
  });

  it('survives a flood of single questions', async () => {
    await using house = await open();
    const [ada, eve] = [house.of('ada'), house.of('eve')];
    await ada.say('Hello');
    await Promise.all(Array.from({ length: 12 }, (_, index) => eve.aside([user(`question ${index}`)])));
    expect((await ada.say('And then?')).session).toBe('live');
    for (let index = 0; index < 12; index++) await eve.aside([user(`question ${index}`)]);
    expect((await ada.say('And now?')).session).toBe('live');
  });

  it('survives a flood of conversations without a second turn', async () => {
    await using house = await open();
    const { service } = house;
    const ada = house.of('ada');
    await ada.say('Hello');
    const first = await service.post('/chat', { message: 'Hello' }, house.headersOf('bob'));
    const { conversation_id } = first.body;
    const second = await service.post('/chat', { message: 'And then?', conversation_id }, house.headersOf('bob'));
    for (let index = 0; index < 6; index++)
      await service.post('/chat', { message: `question ${index}` }, house.headersOf('eve'));
    expect((await ada.say('And then?')).session).toBe('live');
    const third = await service.post('/chat', { message: 'Still there?', conversation_id }, house.headersOf('bob'));
    const [before, after] = [second, third].map(({ body }) => readReport(body.response));
    expect(after?.pid).toBe(before?.pid);
  });

  it('is evicted for another conversation that continues, and not for a single question', async () => {
    await using house = await open({ MODEL_API_LIVE_SESSIONS: '1' });
    const [ada, bob] = [house.of('ada'), house.of('bob')];
    await ada.say('Hello');
    expect((await ada.say('And then?')).session).toBe('live');
    await bob.say('Hello');
    expect((await ada.say('And now?')).session).toBe('live');
    expect((await bob.say('And then?')).session).toBe('replay');
    expect((await bob.say('And now?')).session).toBe('live');
    expect((await ada.say('Still there?')).session).toBe('replay');
  });
});

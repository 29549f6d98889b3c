import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { features } from '../../../src/features.js';
import { endpoints } from '../../../src/shared/api/endpoints.js';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { headersOf, keyOf } from '../../support/doors/named-keys.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

const keyLine = (name: string, options: string) => `${name}:sha256:${digestOf(keyOf(name))}:${options}`;
const lines = [
  '@bio101 each=tokens:200000/week models=eliza expires=2099-07-15',
  '@law expires=2099-07-15 tokens=5/day',
  '@lab tokens=5000000/day',
  keyLine('operator', 'scopes=ask+chat+admin'),
  keyLine('prof', 'admin=@bio101'),
  keyLine('alice', 'scopes=ask+chat'),
  keyLine('bio101-ada', 'group=bio101'),
  keyLine('law-eve', 'group=law'),
  'sso:ben:group=bio101',
  'sso:dean:admin=@bio101,own_keys=3',
];
const [operator, prof, alice] = [headersOf('operator'), headersOf('prof'), headersOf('alice')];

let folder: TemporaryFolder;
let keysFile: string;
let service: Service;

beforeAll(async () => {
  folder = await temporaryFolder();
  keysFile = join(folder.path, 'keys');
  await writeFile(keysFile, `${lines.join('\n')}\n`, { mode: 0o600 });
  service = await startService({
    env: {
      ...twoWorkers,
      MODEL_API_KEYS_FILE: keysFile,
      MODEL_API_STATE_FOLDER: folder.path,
      MODEL_API_AUDIT_FILE: join(folder.path, 'audit.jsonl'),
      MODEL_API_TRUST_PROXY: '127.0.0.1',
      MODEL_API_USER_HEADER: 'X-User',
      MODEL_API_FILES: 'memory',
    },
  });
});
beforeEach(async () => {
  for (const { name, may_change: mayChange } of await membersOf('bio101'))
    if (mayChange) await service.delete(`/courses/bio101/members/${name}`, operator);
});
afterAll(async () => {
  await service.stop();
  await folder[Symbol.asyncDispose]();
});

interface Listed {
  readonly name: string;
  readonly may_change: boolean;
  readonly has_left?: true;
  readonly limits: readonly string[];
}

/** Returns the present members of a course. */
async function membersOf(course: string, by = operator): Promise<readonly Listed[]> {
  const members = (await service.get(`/courses/${course}`, by)).body.members as readonly Listed[];
  return members.filter(({ has_left: hasLeft }) => hasLeft !== true);
}

const enrol = (logins: readonly string[], options: object = {}, by: Record<string, string> = prof) =>
  service.post('/courses/bio101/members', { logins, ...options }, by);
const ask = (key: unknown) => service.post('/ask', { prompt: 'Hello', model: 'eliza' }, { 'x-api-key': String(key) });
const codeOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => [status, body.error];

describe('A teacher', () => {
  it('sees the own course with its members, and no other group', async () => {
    const { courses } = (await service.get('/courses', prof)).body as { courses: { name: string }[] };
    expect(courses).toMatchObject([
      { name: 'bio101', until: '2099-07-15', members: 2, limits: expect.arrayContaining(['each=tokens:200000/week']) },
    ]);
    expect((await membersOf('bio101', prof)).map(({ name, may_change: mayChange }) => [name, mayChange])).toEqual([
      ['bio101-ada', false],
      ['ben', false],
    ]);
    for (const name of ['law', 'lab', 'none', '*', '..%2flaw'])
      for (const path of [`/courses/${name}`, `/courses/${name}/report`])
        expect(codeOf(await service.get(path, prof))).toEqual([404, 'not_found']);
    const all = (await service.get('/courses', operator)).body as { courses: { name: string }[] };
    expect(all.courses.map(({ name }) => name)).toEqual(['bio101', 'law']);
  });

  it('adds people, each with a key that works and is shown once', async () => {
    const { status, body } = await enrol(['cleo', 'Dan@Example.org'], { tokens: '5000/week' });
    const added = body.added as { login: string; name: string; key: string }[];
    expect([status, added.map(({ login }) => login)]).toEqual([201, ['cleo', 'dan@example.org']]);
    for (const { key } of added) expect(await ask(key)).toMatchObject({ status: 200 });
    const again = await enrol(['DAN@example.org', 'cleo']);
    expect([again.status, again.body.added, again.body.staying]).toEqual([201, [], ['dan@example.org', 'cleo']]);
    const shown = await Promise.all(['', '/report'].map((path) => service.get(`/courses/bio101${path}`, prof)));
    for (const { key } of added) {
      for (const { text } of shown) expect(text).not.toContain(key);
      for (const { text } of shown) expect(text).not.toContain(digestOf(key));
    }
    expect(shown[1]?.text.split('\n')[0]).toBe('course,name,client,jobs,failed,tokens,cost_usd,limits,has_left');
    expect(shown[1]?.text).toMatch(
      /^bio101,bio101-cleo,made bio101-cleo~[0-9a-f]{12},1,0,[1-9]\d*,[\d.]+,tokens=5000\/week,false$/m,
    );
  });

  it('limits and removes members who were added over HTTP', async () => {
    const { body } = await enrol(['lia']);
    const [{ key, name } = { key: '', name: '' }] = body.added as { key: string; name: string }[];
    const path = `/courses/bio101/members/${name}`;
    const limited = await service.patch(path, { tokens: '1/week', expires: '2098-01-01' }, prof);
    expect([limited.status, limited.body.limits]).toEqual([200, ['tokens=1/week', 'expires=2098-01-01']]);
    expect(await ask(key)).toMatchObject({ status: 200 });
    await until(async () => (await ask(key)).status === 429, 'the limit of the member');
    expect((await service.patch(path, { tokens: null }, prof)).body.limits).toEqual(['expires=2098-01-01']);
    expect((await service.delete(path, prof)).status).toBe(200);
    expect((await ask(key)).status).toBe(401);
    expect(codeOf(await service.delete(path, prof))).toEqual([404, 'not_found']);
  });

  it('gives no new budget to a person who is removed and added again, and sees in the report who has left', async () => {
    const added = async () => {
      const { body } = await enrol(['moe'], { tokens: '1/week' });
      const [{ key, client } = { key: '', client: '' }] = body.added as { key: string; client: string }[];
      return { key, client };
    };
    const first = await added();
    expect(await ask(first.key)).toMatchObject({ status: 200 });
    await until(async () => (await ask(first.key)).status === 429, 'the use of the budget');
    await service.delete('/courses/bio101/members/bio101-moe', prof);
    const report = async () => {
      const { text } = await service.get('/courses/bio101/report', prof);
      return text.split('\n').filter((line) => line.includes('-moe,'));
    };
    expect(await report()).toEqual([expect.stringMatching(new RegExp(`,${first.client},1,0,.*,true$`))]);
    const second = await added();
    expect(second.client).not.toBe(first.client);
    expect((await ask(second.key)).status).toBe(429);
    expect(await report()).toEqual([
      expect.stringMatching(new RegExp(`,${second.client},1,0,.*,tokens=1/week,false$`)),
    ]);
    const usage = await service.get('/usage', { 'x-api-key': second.key });
    expect(usage.body.budgets).toMatchObject([{ tokens: { max: 1, used: expect.any(Number) } }]);
    expect((usage.body.budgets as [{ tokens: { used: number } }])[0].tokens.used).toBeGreaterThan(0);
  });

  it('is named in the audit', async () => {
    await enrol(['cleo']);
    await service.patch('/courses/bio101/members/bio101-cleo', { tokens: '1/week' }, prof);
    await service.delete('/courses/bio101/members/bio101-cleo', prof);
    const { records } = (await service.get('/audit?limit=3', operator)).body;
    const target = expect.stringMatching(/^made bio101-cleo~/);
    const acts = ['key_removed', 'key_changed', 'key_made'];
    expect(records).toMatchObject(acts.map((act) => ({ act, by: 'key prof', target })));
  });

  it.each([
    ['more tokens than the course', { tokens: '200001/week' }, 'tokens'],
    ['tokens of another period', { tokens: '200000/day' }, 'tokens'],
    ['another model', { models: ['opus'] }, 'models'],
    ['a later end', { expires: '2099-07-16' }, 'expires'],
    ['the scope admin', { scopes: ['admin'] }, 'body'],
    ['a course to administer', { admin: '@bio101' }, 'body'],
    ['another group', { group: 'law' }, 'body'],
    ['a rate', { rate: '1000/1' }, 'body'],
    ['subclients', { subclients: true }, 'body'],
  ])('cannot give a member %s', async (_, options, path) => {
    await enrol(['cleo']);
    for (const answer of [
      await enrol(['dan'], options),
      await service.patch('/courses/bio101/members/bio101-cleo', options, prof),
    ]) {
      expect(codeOf(answer)).toEqual([400, 'validation_error']);
      expect(JSON.stringify(answer.body.details)).toContain(path === 'body' ? Object.keys(options)[0] : path);
    }
    expect((await membersOf('bio101')).map(({ name, limits }) => [name, limits])).toEqual([
      ['bio101-ada', []],
      ['ben', []],
      ['bio101-cleo', []],
    ]);
  });

  it('cannot change members of the operator, other keys, or members of another group', async () => {
    for (const [name, status] of [
      ['bio101-ada', 403],
      ['ben', 403],
      ['law-eve', 404],
      ['prof', 404],
      ['operator', 404],
    ]) {
      const path = `/courses/bio101/members/${name}`;
      expect((await service.patch(path, { tokens: '1/week' }, prof)).status).toBe(status);
      expect((await service.delete(path, prof)).status).toBe(status);
    }
    const { body } = await service.post('/keys', { name: 'bio101-eve' }, operator);
    expect(codeOf(await enrol(['eve']))).toEqual([400, 'validation_error']);
    expect(await ask(body.key)).toMatchObject({ status: 200 });
    await service.delete('/keys/bio101-eve', operator);
    expect(codeOf(await service.post('/courses/law/members', { logins: ['x'] }, prof))).toEqual([404, 'not_found']);
  });

  it('adds all people or nobody', async () => {
    for (const logins of [['cleo', 'a b'], ['cleo', ''], ['cleo', '=1+1'], ['cleo', '\u200b'], Array(501).fill('x')])
      expect(codeOf(await enrol(logins))).toEqual([400, 'validation_error']);
    expect(await membersOf('bio101')).toHaveLength(2);
    const answers = await Promise.all([enrol(['cleo', 'dan']), enrol(['dan', 'cleo']), enrol(['cleo'])]);
    expect(answers.flatMap(({ body }) => (body.added as unknown[]).length).toSorted()).toEqual([0, 0, 2]);
    expect(await membersOf('bio101')).toHaveLength(4);
  });

  it('whom a proxy signs on has no members among the own keys', async () => {
    const dean = { 'x-user': 'dean' };
    expect((await enrol(['cleo'], {}, dean)).status).toBe(201);
    expect((await service.get('/keys', dean)).body.keys).toEqual([]);
    expect(codeOf(await service.post('/keys/bio101-cleo/rotate', {}, dean))).toEqual([404, 'not_found']);
    expect((await service.delete('/courses/bio101/members/bio101-cleo', dean)).status).toBe(200);
  });

  it('gives the own keys no course to administer', async () => {
    const { body } = await service.post('/keys', { name: 'laptop' }, { 'x-user': 'dean' });
    const laptop = { 'x-api-key': String(body.key) };
    expect((await service.get('/courses', laptop)).body.courses).toEqual([]);
    expect(codeOf(await enrol(['cleo'], {}, laptop))).toEqual([404, 'not_found']);
    await service.delete('/keys/laptop', operator);
  });

  it('may do nothing at any other endpoint that a plain key may not do', async () => {
    const listed = [...endpoints, ...features.flatMap((feature) => [...feature.endpoints])];
    const routes = listed.filter(
      ({ route }) => !route.startsWith('/courses') && !/stream|events|console|docs/.test(route),
    );
    expect(routes.length).toBeGreaterThan(35);
    const refused: string[] = [];
    for (const { method, route } of routes) {
      const path = route.replace(/\{\w+\}/g, 'operator');
      const send = (headers: Record<string, string>) => {
        if (method === 'GET') return service.get(path, headers);
        if (method === 'DELETE') return service.delete(path, headers);
        return method === 'PATCH'
          ? service.patch(path, {}, headers)
          : service.post(path, route === '/keys' ? { name: 'x' } : {}, headers);
      };
      const [plain, teacher] = [await send(alice), await send(prof)];
      expect([method, route, ...codeOf(teacher)]).toEqual([method, route, ...codeOf(plain)]);
      if (plain.status === 403) refused.push(`${method} ${route}`);
    }
    expect(refused).toEqual(
      expect.arrayContaining([
        ...['POST /keys', 'PATCH /keys/{name}', 'DELETE /keys/{name}', 'POST /keys/{name}/rotate', 'GET /keys'],
        ...['POST /store/purge', 'POST /store/backup', 'POST /store/verify', 'GET /audit', 'POST /health/recheck'],
      ]),
    );
    const used = (await service.get('/usage?group=client', prof)).body.usage as { client: string }[];
    expect(used.filter(({ client }) => client !== 'prof')).toEqual([]);
  });

  it.each([
    ['GET', '/courses/bio101'],
    ['GET', '/courses/bio101/report'],
    ['POST', '/courses/bio101/members'],
    ['PATCH', '/courses/bio101/members/bio101-ada'],
    ['DELETE', '/courses/bio101/members/bio101-ada'],
  ])('is needed, or an administrator: %s %s', async (method, path) => {
    const body = method === 'POST' ? { logins: ['x'] } : {};
    const send = (headers: Record<string, string>) => {
      if (method === 'GET') return service.get(path, headers);
      if (method === 'DELETE') return service.delete(path, headers);
      return method === 'PATCH' ? service.patch(path, body, headers) : service.post(path, body, headers);
    };
    for (const name of ['alice', 'bio101-ada', 'law-eve'])
      expect(codeOf(await send(headersOf(name)))).toEqual([404, 'not_found']);
    expect((await send({})).status).toBe(401);
    expect((await service.get('/courses', alice)).body.courses).toEqual([]);
  });

  it('adds nobody to a course that has ended, whose members are refused at once', async () => {
    const { body } = await enrol(['cleo']);
    const [{ key } = { key: '' }] = body.added as { key: string }[];
    const text = await readFile(keysFile, 'utf8');
    await writeFile(keysFile, text.replace('eliza expires=2099-07-15', 'eliza expires=2020-01-01'));
    await until(async () => (await ask(key)).status === 401, 'the end of the course');
    expect((await ask(keyOf('bio101-ada'))).status).toBe(401);
    expect(codeOf(await enrol(['dan']))).toEqual([403, 'forbidden']);
    expect(await membersOf('bio101', prof)).toHaveLength(3);
    await writeFile(keysFile, text);
    await until(async () => (await ask(key)).status === 200, 'the course again');
  });

  it('leaves no key that works when the operator removes the course', async () => {
    const { body } = await enrol(['cleo']);
    const [{ key } = { key: '' }] = body.added as { key: string }[];
    expect((await ask(key)).status).toBe(200);
    const text = await readFile(keysFile, 'utf8');
    await writeFile(keysFile, text.replace(/^@bio101.*\n/, ''));
    await until(async () => (await service.get('/courses', prof)).text.includes('"courses":[]'), 'the end of the line');
    expect((await ask(key)).status).toBe(401);
    await writeFile(keysFile, text);
    await until(async () => (await ask(key)).status === 200, 'the course again');
  });

  it('has set no limit that stays above that of the course when the operator lowers it', async () => {
    const { body } = await enrol(['ned'], { tokens: '5000/week' });
    const [{ key } = { key: '' }] = body.added as { key: string }[];
    expect((await ask(key)).status).toBe(200);
    const text = await readFile(keysFile, 'utf8');
    await writeFile(keysFile, text.replace('each=tokens:200000/week', 'each=tokens:1/week'));
    await until(async () => (await ask(key)).status === 429, 'the lower limit');
    const limits = (await membersOf('bio101')).find(({ name }) => name === 'bio101-ned')?.limits;
    expect(limits).toEqual(['tokens=1/week']);
    await writeFile(keysFile, text);
    await until(async () => (await ask(key)).status === 200, 'the old limit');
  });

  it('cannot allow more than a group around the course does', async () => {
    const text = await readFile(keysFile, 'utf8');
    const outer = '@bio101 in=faculty expires=2099-07-15\n@faculty each=tokens:10/day\n';
    await writeFile(keysFile, text.replace(/^@bio101.*\n/, outer));
    await until(async () => (await service.get('/courses', prof)).text.includes('in=faculty'), 'the group around it');
    expect(codeOf(await enrol(['dan'], { tokens: '11/day' }))).toEqual([400, 'validation_error']);
    expect((await enrol(['dan'], { tokens: '9/day' })).status).toBe(201);
    await writeFile(keysFile, text);
    await until(async () => (await service.get('/courses', prof)).text.includes('eliza'), 'the old line');
  });
});

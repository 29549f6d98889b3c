import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { untilProcesses } from '../../support/agents/reporting-model.js';
import { until } from '../../support/basics/until.js';
import { AccountsLab, keyHeaders } from '../../support/service/accounts-lab.js';
import { script } from '../../support/service/service.js';

/** Clients, and how their keys change between two questions. All get a new value, too. */
const changes = {
  ada: { before: 'accounts=team', after: 'accounts=team' },
  bob: { before: 'accounts=team', after: 'accounts=spare' },
  carol: { before: 'accounts=team,expires=2099-01-01', after: 'accounts=team,expires=2099-01-02' },
  dan: { before: 'accounts=team,scopes=ask', after: 'accounts=team,scopes=ask+chat' },
} as const;
type Person = keyof typeof changes;
const people = Object.keys(changes) as Person[];
const newKeyOf = (person: Person) => `the-new-key-of-${person}-in-this-test`;

it('Clients with new keys, other accounts, another expiry or other scopes get no renewed process of before', async () => {
  const options = Object.fromEntries(people.map((person) => [person, changes[person].before]));
  const env = {
    MODEL_API_CLI: 'claude',
    MODEL_API_CLI_COMMAND: script('rewinds.pl'),
    MODEL_API_STANDBY: '0',
    MODEL_API_LIVE_SESSIONS: '8',
  };
  await using lab = await AccountsLab.start({ team: '', spare: '' }, options, env);
  const ask = (prompt: string, headers: Record<string, string>) => lab.service.post('/ask', { prompt }, headers);
  const pidOf = (response: unknown) => Number(String(response).split('|', 1)[0]);
  for (const person of people) await ask('one', keyHeaders(person));
  await untilProcesses(lab.service, { renewed: people.length, busy: 0 });
  const before = await lab.service.jobProcesses();
  const lines = people.map((person) => `${person}:sha256:${digestOf(newKeyOf(person))}:${changes[person].after}\n`);
  await writeFile(join(lab.folder.path, 'keys'), lines.join(''));
  for (const person of people) {
    const answer = await until(async () => {
      const { status, body } = await ask('three', { 'x-api-key': newKeyOf(person) });
      return status === 200 ? String(body.response) : null;
    }, `the new key of ${person}`);
    expect(before).not.toContain(pidOf(answer));
    expect(answer.split('|').at(-1)).toBe('three');
  }
  await until(
    async () => (await lab.service.jobProcesses()).every((pid) => !before.includes(pid)),
    'the processes of before to end',
  );
});

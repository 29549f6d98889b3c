import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { freePort } from '../../support/basics/free-port.js';
import { until } from '../../support/basics/until.js';
import { spawnCommand } from '../../support/clients/command.js';
import { untilTreeGone } from '../../support/jobs/jobs.js';
import { script, startWithProgram } from '../../support/service/service.js';

const count = 180;
const slots = 4;
const goneMs = 10_000;
/** Numbers of answers at which the command and the service are killed. */
const killsAt = { command: [10, 50, 90], service: [30, 70] };

describe('The command batch', () => {
  it('answers each prompt once, although it and the service are killed', async () => {
    await using folder = await temporaryFolder();
    const at = (name: string) => join(folder.path, name);
    const [notes, input, output] = [at('notes'), at('prompts'), at('answers')];
    const lines = Array.from({ length: count }, (_, id) => JSON.stringify({ id, prompt: `line ${id}` }));
    await writeFile(input, lines.join('\n'));
    const MODEL_API_PORT = String(await freePort());
    const store = `sqlite:${join(folder.path, 'state', 'store.db')}`;
    const env = { MODEL_API_PORT, MODEL_API_STORE: store, MODEL_API_MAX_CONCURRENT: String(slots) };
    const start = () => startWithProgram(script('notes-each-job.pl', notes), env);
    const ask = async () => {
      const command = spawnCommand(['batch', input, '-o', output], { MODEL_API_PORT });
      await once(command.stderr as NodeJS.ReadableStream, 'data'); // the command needs the service at its start
      command.stderr?.resume();
      return command;
    };
    const linesIn = async (path: string) => {
      const text = await readFile(path, 'utf8').catch(() => '');
      return text.split('\n').filter((line) => line !== '');
    };
    let service = await start();
    let command = await ask();
    try {
      const kills = [...killsAt.command, ...killsAt.service].toSorted((a, b) => a - b);
      for (const kill of kills) {
        await until(async () => (await linesIn(output)).length >= kill, `${kill} answers`, 60_000);
        if (killsAt.command.includes(kill)) {
          command.kill('SIGKILL');
          await once(command, 'exit');
          command = await ask();
        } else {
          service.process.kill('SIGKILL');
          await service.exited;
          await untilTreeGone(service, goneMs);
          await service.stop();
          service = await start();
        }
      }
      expect(await once(command, 'exit')).toEqual([0, null]);
      const answers = (await linesIn(output)).map((line) => JSON.parse(line) as { id: number; response: string });
      expect(answers.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(lines.map((_, id) => id));
      for (const { id, response } of answers) expect(response).toBe(`done: line ${id}`);
      // A killed command loses nothing: only lines that ran at a kill of the service start again.
      expect((await linesIn(notes)).length).toBeLessThanOrEqual(count + killsAt.service.length * slots);
      // Only a file that was uploaded just before a kill may remain.
      expect((await service.get('/v1/files?purpose=batch_output')).body.data).toEqual([]);
    } finally {
      command.kill('SIGKILL');
      await service.stop();
    }
  }, 300_000);
});

import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { accounting } from './accounting.js';
import { agentsByHand } from './agents.js';
import { batch } from './batch.js';
import { batchAttacks } from './batch-attacks.js';
import { chat } from './chat.js';
import { claude } from './claude.js';
import { claudeLoad } from './claude-load.js';
import { clientTools } from './client-tools.js';
import { conversationMemory } from './conversation-memory.js';
import { conversations } from './conversations.js';
import { documents } from './documents.js';
import { doors } from './doors.js';
import { eventLoop } from './event-loop.js';
import { contentAttacks, expanding, floodAttacks, searchAttacks, uploadAttacks } from './expanding.js';
import { fairness } from './fairness.js';
import { firstDelta } from './first-delta.js';
import { fleet } from './fleet.js';
import { gemini } from './gemini.js';
import { growth } from './growth.js';
import { hostileBodies } from './hostile-bodies.js';
import { severalHosts } from './hosts.js';
import { idle } from './idle.js';
import { idleConnections } from './idle-connections.js';
import { keys } from './keys.js';
import { largestBodiesOfAll } from './largest-bodies.js';
import { latency } from './latency.js';
import { localUsers } from './local-users.js';
import { login } from './login.js';
import { longChats } from './long-chats.js';
import { memory } from './memory.js';
import { ollama } from './ollama.js';
import { reading } from './reading.js';
import { renewed } from './renewed.js';
import { resumedStreams } from './resumed-streams.js';
import { scrape } from './scrape.js';
import { slowClients } from './slow-clients.js';
import { stores } from './stores.js';
import { busyWarning, describeMachine } from './support/machine.js';
import { sectionIn } from './support/results.js';
import { type Row, tableHead, tableLine } from './support/table.js';
import { standby, throughput } from './throughput.js';
import { traces } from './traces.js';
import { twoClis } from './two-clis.js';
import { viewers } from './viewers.js';

/**
 * Usage: npm run bench -- [name] [--rounds N] [--write]. Measures only the groups whose name contains `name`. `--write`
 * writes each result to bench/RESULTS.md. The variable SERVICE_DIST names the folder `dist` of an older version, whose
 * service is then measured, in a section of its own. `long-chats` compares this version with the `dist` in BEFORE_DIST.
 */

const questions: Readonly<Record<string, (rounds: number) => Promise<Row[]>>> = {
  throughput,
  latency,
  'event-loop': eventLoop,
  memory,
  idle,
  scrape,
  viewers,
  fleet,
  accounting,
  'slow-clients': slowClients,
  'hostile-bodies': hostileBodies,
  expanding,
  growth,
  'largest-bodies': largestBodiesOfAll,
  'upload-attacks': uploadAttacks,
  'content-attacks': contentAttacks,
  'search-attacks': searchAttacks,
  'batch-attacks': batchAttacks,
  'flood-attacks': floodAttacks,
  reading,
  standby,
  fairness,
  'conversation-memory': conversationMemory,
  conversations,
  keys,
  'local-users': localUsers,
  chat,
  'first-delta': firstDelta,
  'resumed-streams': resumedStreams,
  claude,
  renewed,
  'claude-load': claudeLoad,
  'client-tools': clientTools,
  'agents-codex': agentsByHand,
  'agents-gemini': gemini,
  'two-clis': twoClis,
  documents,
  doors,
  ollama,
  stores,
  'several-hosts': severalHosts,
  traces,
};

/** Groups that run only by their full name, because they take long, or compare two builds. */
const onDemand: typeof questions = { batch, login, 'idle-connections': idleConnections, 'long-chats': longChats };

const defaultRounds = 11;
const results = join(__dirname, '..', '..', 'bench', 'RESULTS.md');

/** Prints all results, including missed targets. Fails only if a group could not measure. */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { rounds: { type: 'string' }, write: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const rounds = Number(values.rounds ?? defaultRounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number from 1');
  const [part = ''] = positionals;
  const own = Object.entries(onDemand).filter(([name]) => name === part);
  for (const [name, ask] of own.length > 0 ? own : Object.entries(questions)) {
    if (!name.includes(part)) continue;
    const { title, version } = sectionOf(name);
    const head = `${version}${describeMachine()} · medians of ${rounds} rounds (lowest–highest)\n\n${busyWarning()}`;
    const rows = (await ask(rounds)).map((row) => `${tableLine(row)}\n`);
    process.stdout.write(`### ${title}\n\n${head}${tableHead}\n${rows.join('')}\n`);
    if (values.write && rows.length > 0) {
      const page = await readFile(results, 'utf8');
      await writeFile(results, sectionIn(page, title, `${head}${tableHead}\n${rows.join('')}`));
    }
  }
}

/** Returns the title of a group, and the version of the service if it comes from another build. */
function sectionOf(name: string): { readonly title: string; readonly version: string } {
  const { SERVICE_DIST: dist } = process.env;
  if (dist === undefined) return { title: name, version: '' };
  const commit = execFileSync('git', ['-C', dist, 'rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  return { title: `${name} before`, version: `Commit ${commit} · ` };
}

void main();

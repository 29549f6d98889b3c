import type { CommandFeature } from './command/base/command.js';
import { accounts } from './features/accounts/feature.js';
import { acp } from './features/acp/feature.js';
import { agentCheck } from './features/agent-check/feature.js';
import { anthropic } from './features/anthropic/feature.js';
import { audit } from './features/audit/feature.js';
import { background } from './features/background/feature.js';
import { batches } from './features/batches/feature.js';
import { budgets } from './features/budgets/feature.js';
import { cgroups } from './features/cgroups/feature.js';
import { codex } from './features/codex/feature.js';
import { command } from './features/command/feature.js';
import { courses } from './features/courses/feature.js';
import { demo } from './features/demo/feature.js';
import { documents } from './features/documents/feature.js';
import { doors } from './features/doors/feature.js';
import { fallbacks } from './features/fallbacks/feature.js';
import { file } from './features/file/feature.js';
import { files } from './features/files/feature.js';
import { groups } from './features/groups/feature.js';
import { idempotency } from './features/idempotency/feature.js';
import { keysApi } from './features/keys-api/feature.js';
import { lentKeys } from './features/lent-keys/feature.js';
import { liveStatus } from './features/live-status/feature.js';
import { localUsers } from './features/local-users/feature.js';
import { mcp } from './features/mcp/feature.js';
import { ollama } from './features/ollama/feature.js';
import { openai } from './features/openai/feature.js';
import { origins } from './features/origins/feature.js';
import { priority } from './features/priority/feature.js';
import { protocols } from './features/protocols/feature.js';
import { readBack } from './features/read-back/feature.js';
import { redis } from './features/redis/feature.js';
import { reservations } from './features/reservations/feature.js';
import { retention } from './features/retention/feature.js';
import { search } from './features/search/feature.js';
import { setupReport } from './features/setup-report/feature.js';
import { signOn } from './features/sign-on/feature.js';
import { sqlite } from './features/sqlite/feature.js';
import { steering } from './features/steering/feature.js';
import { stores } from './features/stores/feature.js';
import { storing } from './features/storing/feature.js';
import { traces } from './features/traces/feature.js';
import { usage } from './features/usage/feature.js';
import { webConsole } from './features/web-console/feature.js';
import { webhooks } from './features/webhooks/feature.js';
import { why } from './features/why/feature.js';
import type { PrimaryFeature } from './primary/features/feature.js';
import type { WorkerFeature } from './worker/features/feature.js';

/**
 * All features. Hooks are called in the order of the list; a feature may use those before it. OpenAI's API comes after
 * the other APIs, because it answers all requests below /v1 that no other API accepts.
 */
export const features: readonly (PrimaryFeature & WorkerFeature & CommandFeature)[] = [
  stores,
  protocols,
  localUsers,
  origins,
  traces,
  audit,
  usage,
  budgets,
  background,
  groups,
  readBack,
  liveStatus,
  setupReport,
  webConsole,
  webhooks,
  idempotency,
  signOn,
  keysApi,
  lentKeys,
  courses,
  accounts,
  fallbacks,
  retention,
  storing,
  steering,
  priority,
  reservations,
  doors,
  search,
  documents,
  files,
  batches,
  why,
  mcp,
  anthropic,
  ollama,
  openai,
  codex,
  command,
  demo,
  acp,
  file,
  agentCheck,
  cgroups,
  sqlite,
  redis,
];

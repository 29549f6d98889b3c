import type { StoredKind } from '../../primary/features/stored-kind.js';
import type { Config } from '../../shared/config/config.js';
import { formatSpan } from '../../shared/text/format.js';
import { maxDays, maxMonths } from '../stores/contract/usage.js';

export type RetentionSettings = Pick<
  Config,
  | 'store'
  | 'conversationTtlMs'
  | 'jobTtlMs'
  | 'maxJobs'
  | 'readBack'
  | 'metricsAuth'
  | 'historyLimit'
  | 'liveSessions'
  | 'sessionIdleMs'
  | 'reuse'
>;

const dayMs = 86_400_000;

/** Returns what the core stores with these settings, in the order in which people ask for it. */
export function storedByCore(settings: RetentionSettings): StoredKind[] {
  const lists = [questionsAndConversations, backgroundJobs, inProcesses, aboutUse];
  return lists.flatMap((listed) => listed(settings));
}

/** Returns `MODEL_API_STORE`, which decides where data is stored, and these further variables. */
function byStore(...others: readonly string[]): string[] {
  return ['MODEL_API_STORE', ...others];
}

function questionsAndConversations({ store, conversationTtlMs, readBack }: RetentionSettings): StoredKind[] {
  const place = store.dataPlace;
  const readers = ['client', 'host'] as const;
  const afterActivity = `${formatSpan(conversationTtlMs)} after its last activity, or until there are too many`;
  return [
    {
      ...{
        kind: 'questions',
        content: 'prompt and answer of POST /ask and of the other APIs',
        place: 'memory',
        readers,
      },
      ...{ keptMs: 0, until: 'until the answer is sent', export: null, deletion: null, variables: [] },
    },
    {
      kind: 'conversations',
      content: 'messages, images, documents, system text and title, with the model and tokens of each answer',
      ...{ place, keptMs: conversationTtlMs, until: afterActivity },
      readers: readBack ? readers : ['host'],
      export: readBack ? 'GET /chat/{id}/messages' : null,
      deletion: 'DELETE /chat/{id}',
      variables: byStore('MODEL_API_CONVERSATION_TTL_SECONDS', 'MODEL_API_MAX_CONVERSATIONS', 'MODEL_API_READ_BACK'),
    },
    {
      ...{ kind: 'responses', content: 'answers of POST /v1/responses, unless store is false', place, readers },
      ...{
        keptMs: conversationTtlMs,
        until: `${formatSpan(conversationTtlMs)} after the last response that continues it`,
      },
      ...{ export: 'GET /v1/responses/{id}', deletion: 'DELETE /v1/responses/{id}' },
      variables: byStore('MODEL_API_CONVERSATION_TTL_SECONDS'),
    },
  ];
}

function backgroundJobs({ store, jobTtlMs, maxJobs }: RetentionSettings): StoredKind[] {
  const place = store.dataPlace;
  const readers = ['client', 'host'] as const;
  return [
    {
      ...{ kind: 'background jobs', content: 'request until the job starts, then answer, calls, thoughts and title' },
      ...{
        place: maxJobs === 0 ? 'nowhere' : place,
        readers,
        keptMs: jobTtlMs,
        until: `${formatSpan(jobTtlMs)} after its end`,
      },
      ...{ export: 'GET /jobs/{id}', deletion: 'DELETE /jobs/{id}' },
      variables: byStore('MODEL_API_JOB_TTL_SECONDS', 'MODEL_API_MAX_JOBS'),
    },
  ];
}

function inProcesses({ liveSessions, sessionIdleMs, reuse }: RetentionSettings): StoredKind[] {
  const held = { place: liveSessions === 0 ? 'nowhere' : 'process', keptMs: sessionIdleMs, readers: ['host'] } as const;
  const shared = { export: null, deletion: null };
  const idle = `${formatSpan(sessionIdleMs)} after its last turn`;
  return [
    {
      ...{ kind: 'live processes', content: 'the conversation of a process that waits for its next turn', ...held },
      ...{ until: idle, ...shared, variables: ['MODEL_API_LIVE_SESSIONS', 'MODEL_API_SESSION_IDLE_SECONDS'] },
    },
    {
      ...{ kind: 'renewed processes', content: 'system text, schema and tools of the last question', ...held },
      ...(reuse === 'off' ? { place: 'nowhere' } : {}),
      ...{
        until: `${idle}, for the same client only`,
        ...shared,
        variables: ['MODEL_API_REUSE', 'MODEL_API_LIVE_SESSIONS'],
      },
    },
  ];
}

/** Returns the kinds of data about use, which have no prompts and answers. */
function aboutUse(settings: RetentionSettings): StoredKind[] {
  const { store, metricsAuth, historyLimit } = settings;
  const none = { export: null, deletion: null };
  return [
    {
      ...{
        kind: 'usage',
        content: 'jobs, tokens, cost and searches by day, model and account',
        place: store.dataPlace,
      },
      ...{ keptMs: maxDays * dayMs, until: `${maxDays} days by day, and ${maxMonths} months by month` },
      ...{ readers: ['client', 'admin', 'host'], export: 'GET /usage', deletion: null, variables: byStore() },
    },
    {
      ...{ kind: 'log', content: 'client, path, status and times of each request; no prompt and no answer' },
      ...{ place: 'output', keptMs: null, until: 'as long as the journal of the host keeps it' },
      ...{ readers: ['host'], ...none, variables: ['MODEL_API_LOG_LEVEL'] },
    },
    {
      ...{ kind: 'metrics', content: 'counts by client', place: 'memory', keptMs: null, until: 'until a restart' },
      readers: metricsAuth ? ['scraper', 'host'] : ['everybody'],
      ...{ ...none, export: 'GET /metrics', variables: ['MODEL_API_METRICS_AUTH'] },
    },
    {
      ...{ kind: 'readiness checks', content: 'state and error of the model CLI', place: 'memory', keptMs: null },
      ...{ until: `until a restart: the newest ${historyLimit}`, readers: ['everybody'] },
      ...{ ...none, export: 'GET /health/history', variables: ['MODEL_API_HEALTH_HISTORY_LIMIT'] },
    },
  ];
}

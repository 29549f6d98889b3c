import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { migrations } from '../../src/features/sqlite/schema.js';
import { features } from '../../src/features.js';
import type { PrimaryFeature } from '../../src/primary/features/feature.js';
import { endpoints, sharedEndpoints } from '../../src/shared/api/endpoints.js';
import { keyOptions } from '../../src/shared/config/key-option-table.js';
import { variables } from '../../src/shared/config/variables.js';
import { primaryCalls } from '../../src/shared/ipc/protocol.js';
import { logEvents } from '../../src/shared/log/logger.js';
import { readSources, root, type Source } from '../support/documents/sources.js';

const sources = readSources('src');
const core = sources.filter(({ path }) => /^src\/(primary|worker|shared)\//.test(path));
const list = 'src/features';

/** Returns a sentence for each import of these files for which `breaks` returns true. */
function importsThat(files: readonly Source[], breaks: (target: string, isType: boolean) => boolean): string[] {
  return files.flatMap(({ path, imports }) =>
    imports.filter(({ target, isType }) => breaks(target, isType)).map(({ target }) => `${path} imports ${target}`),
  );
}

/** Returns the methods and routes of endpoints, each once. */
function namesOf(listed: readonly { readonly method: string; readonly route: string }[]): string[] {
  return [...new Set(listed.map(({ method, route }) => `${method} ${route}`))];
}

/** Files that name Anthropic or its API, with the reason. */
const anthropicNames = {
  ...namesIn('the API of the model behind claude, which claude calls', [
    'src/primary/cli/adapters/claude/adapter.ts',
    'src/primary/cli/adapters/claude/launch.ts',
    'src/primary/cli/adapters/claude/model-rules.ts',
    'src/primary/cli/adapters/claude/tool-server.ts',
    'src/primary/cli/adapters/claude/writer.ts',
    'src/primary/cli/adapters/common/failure.ts',
    'src/primary/cli/contract/model-rules.ts',
    'src/shared/job.ts',
    'src/shared/text/turns.ts',
  ]),
  ...namesIn('a prefix of model names', ['src/primary/cli/route.ts', 'src/shared/config/values.ts']),
  'src/shared/api/models.ts': 'facts about models that only this API has',
};

/** Files that name OpenAI or its API, with the reason. */
const openAiNames = {
  'src/primary/cli/adapters/common/failure.ts': 'hosts that errors of model CLIs name',
  'src/primary/jobs/sampling-rules.ts': 'refusals by this API, which model CLIs report',
};

function namesIn(reason: string, files: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(files.map((file) => [file, reason]));
}

/**
 * Words that belong to a feature, and the files of the core that have them nevertheless, with the reason. A file that no
 * longer has one must leave this list.
 */
const words: Readonly<Record<string, { readonly pattern: RegExp; readonly named: Readonly<Record<string, string>> }>> =
  {
    anthropic: { pattern: /anthropic|\/v1\/messages/i, named: anthropicNames },
    audit: { pattern: /audit/i, named: {} },
    // The core has the tokens of each answer, the bills of jobs, and the names of those whose limits count for a client.
    'local-users': { pattern: /MODEL_API_(?:LOCAL|ALLOWED)_USERS|UserNames\b/, named: {} },
    origins: { pattern: /MODEL_API_ALLOWED_ORIGINS|Access-Control/i, named: {} },
    usage: {
      pattern: /usage.?(?:ledger|journal|report|figure|row|part)|recent.?usage|'\/usage\b/i,
      named: {
        'src/primary/jobs/bill.ts': 'the amounts that a job is charged, which belong to the answer',
        'src/shared/tables/usage-figures.ts': 'the table of the figures, which the console reads, too',
      },
    },
    // The protocol as such is also spoken to model CLIs and to the operator's server that searches the web.
    mcp: { pattern: /'\/mcp'|\bpostMcp|mcpErrors/, named: {} },
    ollama: { pattern: /ollama|'\/api\b/i, named: {} },
    openai: { pattern: /openai|chat.?completion|\/v1\/(?:batches|chat|completions|responses)/i, named: openAiNames },
    traces: {
      pattern: /otlp|\botel|\bspans\b|exporter|\bsampler/i,
      named: { 'src/primary/lifecycle/start-environment.ts': 'variables that no program of the service may inherit' },
    },
    budgets: {
      pattern: /budget/i,
      named: {
        ...namesIn('thoughts of claude have one', [
          'src/primary/cli/adapters/claude/model-rules.ts',
          'src/primary/cli/adapters/claude/request-fields.ts',
          'src/primary/cli/adapters/claude/writer.ts',
        ]),
        ...namesIn('the reason of refusals by any limit of a day, week or month, such as the one for searches', [
          'src/primary/jobs/job-entry.ts',
          'src/primary/observe/job-metrics.ts',
          'src/shared/api/error.ts',
          'src/shared/errors.ts',
          'src/shared/tables/errors.ts',
          'src/worker/http/responses.ts',
        ]),
        ...namesIn('texts of the published description of the API, which do not change', [
          'src/shared/api/limit-use.ts',
          'src/shared/config/group-warnings.ts',
          'src/shared/config/key-option-table.ts',
        ]),
      },
    },
    groups: { pattern: /features\/groups|\brunning=/, named: {} },
    idempotency: {
      pattern: /idempoten|claim(?:Item|Order)|keyed.?request/i,
      named: {
        ...namesIn('error codes and causes of Retry-After, which are one list', [
          'src/shared/api/endpoints.ts',
          'src/shared/errors.ts',
          'src/shared/tables/errors.ts',
        ]),
      },
    },
    'read-back': {
      pattern: /READ_BACK|importTurn|ImportedTurns|ConversationSearch|conversation_id\}\/(?:messages|fork)/,
      named: {},
    },
    'web-console': { pattern: /MODEL_API_CONSOLE|consoleFiles|hasConsole|consolePath/, named: {} },
    'live-status': {
      pattern: /StatusFeed|StatusViewers|statusFeed|'\/status\b/,
      named: namesIn('requests of the console, which the log leaves out', ['src/worker/http/exchange.ts']),
    },
    retention: { pattern: /retention/i, named: {} },
    files: {
      pattern: /\/v1\/files|MODEL_API_(?:MAX_)?FILES|StoredFiles|\bFileReader\b|FileBodies|uploadPurpose/,
      named: {
        'src/shared/api/ask.ts': 'a text of the published description of the API, which does not change',
        'src/shared/api/files.ts': 'parameters and bodies that the command reads, too',
        'src/shared/files.ts': 'facts about files that each store implements',
      },
    },
    batches: {
      pattern: /batch/i,
      named: {
        'src/shared/background.ts': 'the batch of a stored line, by which Redis knows whether a host may run it',
        'src/shared/files.ts': 'what each store implements',
        'src/shared/api/files.ts': 'parameters and bodies that the command reads, too',
      },
    },
    storing: {
      pattern: /store=off|preventsStoring/,
      named: { 'src/shared/errors.ts': 'the message of an error' },
    },
    // The core has a rank of background jobs in the queue, and the steps of such a job: batches of work need no request.
    background: {
      pattern: /respond-async|BackgroundJobs\b|ClientJobs\b|StoredJobs\b|JobPuller|EventLog\b|'\/jobs\b|background_job/,
      named: {
        ...namesIn('the section of the status', ['src/shared/api/status.ts']),
        'src/shared/errors.ts': 'a cause of Retry-After, which are one list',
        ...namesIn('the published description of the API, which the command also reads', [
          'src/shared/api/endpoints.ts',
          'src/shared/api/jobs.ts',
          'src/shared/features/feature.ts',
        ]),
      },
    },
    priority: { pattern: /X-Priority|priority=on|\bmayGoFirst/, named: {} },
    why: {
      pattern: /\bJobReasons|jobReasons|\bwhy: z/,
      named: { 'src/shared/api/jobs.ts': 'the field of the published description' },
    },
    steering: { pattern: /\bsteer(?:ing|ed|s)?\b/i, named: {} },
    // The core has documents as parts of messages, which it stores, and which claude can read itself.
    documents: {
      pattern: /DocumentInspect|document-(?:inspect|thread|texts)|inspectPdf|\btextReader|\bTextReader|pdftotext/,
      named: {
        'src/shared/tables/document-types.ts': 'the table of the types',
        ...namesIn('the published description of the API', ['src/shared/api/ask.ts', 'src/shared/api/models.ts']),
      },
    },
    // The core has searches in answers and in their figures, because claude itself can search.
    search: {
      pattern:
        /MODEL_API_SEARCH|search.?(?:server|quota|position|token\b)|relay.?search|searches.?per.?day|\bmcp-post/i,
      named: {},
    },
    accounts: {
      pattern:
        /MODEL_API_ACCOUNTS|accounts(?:\.js|-file|_file|_rejected)|CliAccounts|AccountLine|AccountList|AccountBody|'\/accounts|[rR]eadAccounts/,
      named: {
        ...namesIn('the file among those that GET /health reports', [
          'src/primary/access/file-faults.ts',
          'src/shared/api/health.ts',
        ]),
        'src/shared/api/accounts.ts': 'a body that the console also reads',
      },
    },
    fallbacks: {
      pattern: /\bfallbacks\b|FallBack|refusesFallback|(?:no|set)Fallback|fallbackField|MODEL_API_FALLBACK|X-Fallback/,
      named: {
        ...namesIn('other models that a request names, and those that an answer reports, also in stored jobs', [
          'src/primary/cli/model-catalog.ts',
          'src/primary/features/feature-hooks.ts',
          'src/shared/api/ask.ts',
          'src/shared/api/chat.ts',
          'src/shared/job.ts',
          'src/worker/jobs/job-request.ts',
          'src/worker/jobs/run-job.ts',
        ]),
      },
    },
    'setup-report': { pattern: /reportSetup|setupReportOf|askForTrial|'\/setup\b/, named: {} },
    'agent-check': { pattern: /AGENT_PORT|HealthAgent|haproxy/, named: {} },
    // The core ends what dead services have left in cgroups, and reads how much memory they leave.
    cgroups: { pattern: /MODEL_API_CGROUP|CLI_MEMORY_MB|CgroupContainments|openCgroupHome|cgroup_lost/, named: {} },
    courses: { pattern: /\bcourses?\b(?! of)|'\/courses|roster/i, named: {} },
    codex: { pattern: /codex/i, named: {} },
    sqlite: { pattern: /sqlite/i, named: {} },
    redis: {
      pattern: /redis|bullmq|\blua\b/i,
      named: { 'src/shared/api/store.ts': 'texts of the published description of the API, which do not change' },
    },
    command: { pattern: /adapters\/command|=command\b|command(?:Adapter|Model)\b/, named: {} },
    demo: { pattern: /\bdemo|eliza/i, named: {} },
    acp: { pattern: /\bacp|gemini|opencode|\bqwen|Agent Client Protocol|home.?files/i, named: {} },
    file: { pattern: /adapter.?file|adapters\/file|\bkit\b|createAdapter\(\)|\bcjs/i, named: {} },
    'sign-on': { pattern: /sign-on|signedOn|(?:user|groups)_?header/i, named: {} },
    'keys-api': {
      pattern: /made.?keys|own_keys|key over HTTP|key_(?:made|changed|removed|rotated)|'\/keys\b/i,
      named: {
        'src/shared/acts.ts': 'the core lists the acts',
        'src/shared/api/health.ts': 'texts of the published description of the API, which do not change',
      },
    },
    reservations: {
      pattern: /'\/reservations|reservations\.js|slots_reserved|reserveSlots/i,
      named: { 'src/shared/acts.ts': 'the core lists the acts' },
    },
    'lent-keys': {
      pattern: /lent.?key/i,
      named: {
        ...namesIn('keys of clients, and their rights', [
          'src/primary/access/clients.ts',
          'src/primary/features/feature.ts',
          'src/shared/config/api-keys.ts',
        ]),
        'src/shared/acts.ts': 'the core lists the acts',
      },
    },
    webhooks: { pattern: /webhook|callback.?url|deliver(?:y|ies)/i, named: {} },
  };

describe('A feature', () => {
  it('is imported only by the list of features, and the list only by the two main files and by the command', () => {
    const outside = sources.filter(({ path }) => !path.startsWith('src/features'));
    expect(importsThat(outside, (target) => target.startsWith('src/features')).toSorted()).toEqual([
      'src/command/command-line.ts imports src/features',
      'src/command/keys-file/key-options.ts imports src/features',
      'src/command/verbs/model-clis.ts imports src/features',
      'src/command/verbs/store.ts imports src/features',
      'src/primary/main.ts imports src/features',
      'src/worker/main.ts imports src/features',
    ]);
    const imports = sources.find(({ name }) => name === list)?.imports ?? [];
    const folders = imports.filter(({ isType }) => !isType).map(({ target }) => target);
    expect(folders.toSorted()).toEqual(features.map(({ name }) => `src/features/${name}/feature`).toSorted());
  });

  it('imports no feature that comes later in the list, and none that it does not need', () => {
    for (const [index, feature] of features.entries()) {
      const { name, needs = [] }: PrimaryFeature = feature;
      const own = sources.filter(({ path }) => path.startsWith(`src/features/${name}/`));
      expect(own.length).toBeGreaterThan(0);
      const needed = features.slice(0, index).filter((each) => needs.includes(each.name));
      expect(needed).toHaveLength(needs.length);
      const earlier = [feature, ...needed].map((each) => `src/features/${each.name}/`);
      const isLater = (target: string) =>
        target.startsWith('src/features') && !earlier.some((start) => target.startsWith(start));
      expect(importsThat(own, isLater)).toEqual([]);
    }
  });

  it('loads nothing of a worker in the primary, and nothing of the primary in a worker', () => {
    const ownImports = new Map(sources.map(({ name, imports }) => [name, imports]));
    /** Returns a sentence for each import of this folder that loading the file causes. */
    const loadedFrom = (name: string, folder: string, seen = new Set<string>()): string[] =>
      seen.has(name)
        ? []
        : (ownImports.get(name) ?? []).flatMap(({ target, isType }) => {
            seen.add(name);
            if (isType) return [];
            if (target.startsWith(folder)) return [`${name} imports ${target}`];
            return target.startsWith('src/features/') ? loadedFrom(target, folder, seen) : [];
          });
    const loaded = features.flatMap(({ name }) => [
      ...loadedFrom(`src/features/${name}/primary`, 'src/worker/'),
      ...loadedFrom(`src/features/${name}/worker`, 'src/primary/'),
    ]);
    expect(loaded).toEqual([]);
  });

  it('loads its code for a process only there: the list itself loads tables', () => {
    const tables = sources.filter(({ name }) => /^src\/features\/[^/]+\/(feature|shared)$/.test(name));
    const isOfProcess = (target: string, isType: boolean) => /^src\/(primary|worker)\//.test(target) && !isType;
    expect(importsThat(tables, isOfProcess)).toEqual([]);
  });

  it.each(features.map(({ name }) => name))('is named nowhere in the core, except in known files: %s', (name) => {
    const { pattern = /$./, named = {} } = words[name] ?? {};
    const naming = core.filter(({ text }) => pattern.test(text)).map(({ path }) => path);
    expect(naming.toSorted()).toEqual(Object.keys(named).toSorted());
  });

  it('has names of its own for its variables, calls, endpoints, events and options of keys', () => {
    const doors = features.map((feature) => feature.describeDoor?.());
    const names = features.flatMap((feature) => [
      ...Object.keys(feature.variables),
      ...Object.keys(feature.calls),
      ...namesOf(feature.endpoints),
      ...Object.keys(feature.logEvents),
      ...Object.keys(feature.keyOptions),
    ]);
    names.push(
      ...features.flatMap((feature) => {
        const described = (feature.describeRoutes?.() ?? []).flatMap(({ endpoints: each }) => each);
        return namesOf(described);
      }),
    );
    names.push(...doors.flatMap((door) => namesOf(door?.endpoints ?? [])));
    const routes = namesOf([...endpoints, ...sharedEndpoints]);
    const known = [variables, primaryCalls, logEvents, keyOptions]
      .flatMap((table) => Object.keys(table))
      .concat(routes);
    expect(names.filter((name, index) => names.indexOf(name) < index || known.includes(name))).toEqual([]);
  });

  it('has names of its own for its tables and their rows, which no store uses for anything else', () => {
    const names = features.flatMap(({ tables }) => tables.flatMap(({ name, rowName }) => [name, rowName]));
    const inSql = migrations.flatMap((step) => [...step.matchAll(/CREATE TABLE (\w+)/g)].map(([, name]) => name));
    const upkeep = readFileSync(join(root, 'src/features/redis/scripts/upkeep.lua'), 'utf8');
    const inRedis = [...upkeep.matchAll(/([\w-]+)(?:'\])? = '(?:hash|zset|string|list|set)'/g)].map(([, name]) => name);
    expect([inSql, inRedis].map((known) => known.length > 5)).toEqual([true, true]);
    expect(names.filter((name, index) => names.indexOf(name) < index || !/^[a-z_]+$/.test(name))).toEqual([]);
    expect(names.filter((name) => inSql.includes(name) || inRedis.includes(name))).toEqual([]);
  });
});

import { basename, dirname, resolve } from 'node:path';
import { features } from '../../features.js';
import { setupReport } from '../../shared/api/setup.js';
import {
  type PurgeReport,
  purgeReport,
  purgeRequest,
  type StoreBackup,
  type StoreReport,
  storeBackup,
  storeReport,
} from '../../shared/api/store.js';
import { ConfigFault } from '../../shared/config/config.js';
import { RelayError } from '../../shared/errors.js';
import { formatCount, formatDuration, formatNumber, labelledRows } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';
import {
  addressFlags,
  type Command,
  type CommandArguments,
  type CommandContext,
  clientFor,
  jsonFlag,
  type StoreFile,
  type StoreOfCommand,
  show,
} from '../base/command.js';
import type { NamedStore } from '../base/environment.js';
import { CommandError, exitCodeOfError, exitCodes, usageError } from '../base/errors.js';

/** Kinds of stores of the features. */
const kinds: readonly StoreOfCommand[] = features.flatMap(({ store: kind }) => kind ?? []);

export const store: Command = {
  name: 'store',
  synopsis: 'backup <file> | verify [file] | purge --client <client>',
  summary: 'back up or check the store, or forget a client',
  flags: {
    client: { type: 'string', placeholder: '<client>', description: "kind and name, such as 'key alice' (purge)" },
    store: {
      type: 'string',
      placeholder: '<place>',
      description: 'the store, such as sqlite:/path.db; default: MODEL_API_STORE',
    },
    ...jsonFlag,
    ...addressFlags,
  },
  maxPositionals: 2,
  words: ['backup', 'verify', 'purge'],
  notes: [
    'If no service has the file open, the command opens the file itself; run it as the owner of the file. Otherwise, or without a file, it calls the running service, which needs a key with the scope admin. A running service writes the backup to the folder of its store.',
    ['The exit code of verify is 1 if it finds a fault.', ...kinds.flatMap(({ note }) => note ?? [])].join(' '),
  ],
  examples: [
    'prompt-relay store backup backup-1.db',
    'prompt-relay store verify /var/backups/backup-1.db',
    "prompt-relay store purge --client 'key alice'",
  ],
  run: async (args, context) => {
    const [action = '', subject] = args.positionals;
    const act = Object.hasOwn(actions, action) ? actions[action] : undefined;
    if (act === undefined) throw usageError('store', 'the action must be backup, verify or purge');
    try {
      return await act(subject, args, context);
    } catch (error) {
      if (error instanceof ConfigFault) {
        throw new CommandError(exitCodes.config, `store: ${error.message.replace('MODEL_API_STORE: ', '')}`);
      }
      if (!(error instanceof RelayError) || error.code === 'cancelled') throw error;
      throw new CommandError(exitCodeOfError(error.code), error.message);
    }
  },
};

type StoreAction = (subject: string | undefined, args: CommandArguments, context: CommandContext) => Promise<number>;

const actions: Readonly<Record<string, StoreAction>> = {
  backup: async (file, args, context) => {
    if (file === undefined || basename(file) === '') throw usageError('store', 'backup: name the file');
    const settings = context.storeSettings(args.value('store'), features);
    const { backupAdvice } = kindOf(settings) ?? {};
    if (backupAdvice !== undefined) throw usageError('store', `backup: ${backupAdvice}`);
    const made =
      (await onFile(fileOf(settings), args, context, (opened) => opened.backupTo(resolve(file)))) ??
      (await backupByService(file, args, context));
    return show(args, context.terminal, made, () => renderBackup(made));
  },
  verify: async (file, args, context) => {
    const settings = context.storeSettings(args.value('store'), features);
    const path = file === undefined ? fileOf(settings) : resolve(file);
    const report =
      (await onFile(path, args, context, (opened) => opened.verify(settings))) ??
      (await verifyByService(file, settings, args, context));
    await show(args, context.terminal, report, (paint) => renderVerdict(report, paint));
    return report.faults.length === 0 ? exitCodes.ok : exitCodes.failed;
  },
  purge: async (unexpected, args, context) => {
    const named = args.value('client');
    if (unexpected !== undefined || named === undefined)
      throw usageError('store', "purge: name the client with --client, such as --client 'key alice'");
    const request = purgeRequest.safeParse({ client: named });
    if (!request.success) throw usageError('store', `--client: ${request.error.issues[0]?.message}`);
    const { client } = request.data;
    const settings = context.storeSettings(args.value('store'), features);
    const purged: PurgeReport =
      (await onFile(
        fileOf(settings),
        args,
        context,
        async (opened) => {
          return { client, ...(await opened.purge(client)), copies: await opened.copies() };
        },
        'purge',
      )) ?? (await (await serviceWith(settings, args, context)).postToStore('/store/purge', { client }, purgeReport));
    return show(args, context.terminal, purged, (paint) => renderPurge(purged, paint));
  },
};

function kindOf({ place }: NamedStore): StoreOfCommand | undefined {
  return kinds.find(({ kind }) => kind === place?.kind);
}

/** Returns the file of the store; null if it is no file, or unknown: only the service can read it. */
function fileOf(settings: NamedStore): string | null {
  const isFile = kindOf(settings)?.openFile !== undefined;
  return isFile && settings.place !== null ? settings.place.shown : null;
}

/**
 * Runs `work` on the file of the store. Resolves with null if a service has the file open, if no path is known, or if
 * --url is given.
 */
async function onFile<T>(
  path: string | null,
  args: CommandArguments,
  { clock }: CommandContext,
  work: (file: StoreFile) => Promise<T>,
  purpose: 'read' | 'purge' = 'read',
): Promise<T | null> {
  if (path === null || args.value('url') !== undefined) return null;
  const open = kinds.find(({ openFile }) => openFile !== undefined)?.openFile;
  const file = (await open?.(path, clock, purpose)) ?? null;
  if (file === null) return null;
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

/** Connects to the running service. For a store that hosts share, throws if the service uses no store of its kind. */
async function serviceWith(settings: NamedStore, args: CommandArguments, context: CommandContext) {
  const [client, kind] = [await clientFor(args, context), kindOf(settings)];
  if (kind?.isShared !== true || (await client.getState('/setup', setupReport)).store.kind === kind.kind) return client;
  throw new CommandError(exitCodes.unavailable, `store: the service at ${client.url} does not use ${kind.label}`);
}

async function verifyByService(
  file: string | undefined,
  settings: NamedStore,
  args: CommandArguments,
  context: CommandContext,
): Promise<StoreReport> {
  const report = await (await serviceWith(settings, args, context)).postToStore('/store/verify', {}, storeReport);
  if (file === undefined || report.path === resolve(file)) return report;
  throw new CommandError(
    exitCodes.unavailable,
    `store: a process has ${file} open, and it is not the service that answers`,
  );
}

/** Has the service make a backup. A service writes backups only to the folder of its store. */
async function backupByService(file: string, args: CommandArguments, context: CommandContext) {
  const client = await clientFor(args, context);
  if (file !== basename(file)) {
    const { store: place } = await client.getState('/setup', setupReport);
    const folder = dirname(place.place ?? '/');
    const isFile = kinds.find(({ kind }) => kind === place.kind)?.openFile !== undefined;
    if (isFile && dirname(resolve(file)) !== folder) {
      throw usageError(
        'store',
        `backup: a running service only writes to the folder of its store: name a file in ${folder}`,
      );
    }
  }
  return client.postToStore('/store/backup', { name: basename(file) }, storeBackup);
}

function renderBackup({ path, bytes, duration_ms: ms }: StoreBackup): string[] {
  return [`${escaped(path)}: ${kilobytes(bytes)} in ${formatDuration(ms)}`];
}

function renderVerdict(report: StoreReport, paint: Paint): string[] {
  const { faults, path, version, bytes, rows, expired, copies } = report;
  const isWell = faults.length === 0;
  const place = path === null ? report.kind : escaped(path);
  const lines: [string, string][] = [
    ['store', version === null ? place : `${place}, version ${version}, ${kilobytes(bytes)}`],
    ['verdict', isWell ? paint.green('no faults') : paint.red(formatCount(faults.length, 'fault'))],
    ...faults.map((fault): [string, string] => ['fault', paint.red(escaped(fault))]),
    ['rows', countsLine(rows)],
    ['expired', countsLine(expired)],
    ['copies', copies.map(escaped).join(', ')],
  ];
  return labelledRows(
    lines.filter(([, text]) => text !== ''),
    paint.dim,
  );
}

function renderPurge({ client, removed, copies }: PurgeReport, paint: Paint): string[] {
  const removedCounts = countsLine(removed);
  const left =
    copies.length === 0
      ? []
      : [`may still contain data: ${copies.map(escaped).join(', ')}: remove these files yourself`];
  return [`${escaped(client)}: removed ${removedCounts === '' ? 'nothing' : removedCounts}`, ...left.map(paint.yellow)];
}

/** What one row and several rows of a table are called. Other tables show their name. */
const nouns: Readonly<Record<string, readonly [one: string, several: string]>> = {
  conversations: ['conversation', 'conversations'],
  jobs: ['background job', 'background jobs'],
  responses: ['response', 'responses'],
  idempotency: ['recorded answer', 'recorded answers'],
  files: ['file', 'files'],
  batches: ['batch', 'batches'],
  usage: ['row of usage', 'rows of usage'],
  deliveries: ['notice', 'notices'],
};

function countsLine(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return some.map(([table, count]) => `${formatNumber(count)} ${nounFor(table, count)}`).join(', ');
}

function nounFor(table: string, count: number): string {
  const [one, several] = nouns[table] ?? [table, table];
  return escaped(count === 1 ? one : several);
}

function kilobytes(bytes: number): string {
  return `${formatNumber(Math.ceil(bytes / 1024))} kB`;
}

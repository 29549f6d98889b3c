import { join } from 'node:path';
import { z } from 'zod';
import { accessErrors, keptErrors, readingErrors } from '../../shared/api/endpoints.js';
import { digestsOf } from '../../shared/config/api-keys.js';
import type { FileFindings, SettingsOfFiles } from '../../shared/config/feature-variables.js';
import type { ReadFile } from '../../shared/config/secrets.js';
import { type FeatureEndpoint, type KeyFields, type RequestFields, withFields } from '../../shared/features/feature.js';
import { actor } from '../../shared/ipc/protocol.js';
import { changeKeyRequest, keyList, keyView, makeKeyRequest, newKey, removedKey, rotateKeyRequest } from './bodies.js';
import { readMadeKeysAt } from './records.js';

/** Tables of the keys that are made over HTTP, which both processes and the documents read. */

/** File in the state folder. */
export const stateFileName = 'made-keys.json';

/** Key that an actor makes or changes. */
const keyOrder = z.object({ name: z.string(), by: actor });
const optionChanges = z.record(z.string(), z.union([z.string(), z.literal(true)]).nullable());

export const calls = {
  /** `options`: texts to set, true for an option without a value, null to remove one. Answers also have those of features. */
  makeKey: { request: keyOrder.extend({ options: optionChanges }), answer: newKey.loose() },
  changeKey: { request: keyOrder.extend({ options: optionChanges }), answer: keyView.loose() },
  removeKey: { request: keyOrder, answer: z.object({}) },
  /** `oldUntil`: day until which the old value works; null if it stops at once. */
  rotateKey: { request: keyOrder.extend({ oldUntil: z.string().nullable() }), answer: newKey.loose() },
  listKeys: { request: z.object({ by: actor }), answer: z.object({ keys: z.array(keyView.loose()) }) },
};

/** Returns the endpoints. Their bodies have these options of all features. */
export function endpointsWith({ body, view }: KeyFields): readonly FeatureEndpoint[] {
  const answer = withFields(keyView, view).meta({ id: 'Key' });
  const newAnswer = withFields(newKey, view).meta({ id: 'NewKey' });
  return [...listEndpoints(answer, newAnswer, body), ...changeEndpoints(answer, newAnswer, body)];
}

function listEndpoints(answer: z.ZodType, newAnswer: z.ZodType, fields: RequestFields): readonly FeatureEndpoint[] {
  const schema = withFields(makeKeyRequest, fields).meta({ id: 'MakeKeyRequest' });
  return [
    {
      ...{ method: 'GET', route: '/keys', errors: accessErrors, alwaysNeedsKey: true },
      ...{ id: 'listKeys', summary: 'List the keys' },
      description:
        'With the scope `admin` all keys, else the keys that you have made. The list never contains a key itself.',
      answer: keyList.extend({ keys: z.array(answer) }).meta({ id: 'KeyList' }),
      answerText: 'The keys.',
    },
    {
      ...{ method: 'POST', route: '/keys', errors: [...readingErrors, 'store_unavailable'], success: 201 },
      ...{ alwaysNeedsKey: true, id: 'makeKey', summary: 'Make a key' },
      description:
        'Needs the scope `admin`, or a person signed on by the proxy with the option `own_keys`, whose keys may do at most what the person may do. The options are the same as in the keys file.',
      body: { schema, example: { name: 'ada-laptop', rate: '60/60' } },
      answer: newAnswer,
      answerText: 'The key, which is not shown again, and its options.',
    },
  ];
}

function changeEndpoints(answer: z.ZodType, newAnswer: z.ZodType, fields: RequestFields): readonly FeatureEndpoint[] {
  const schema = withFields(changeKeyRequest, fields).meta({ id: 'ChangeKeyRequest' });
  const errors = [...readingErrors, 'not_found', 'store_unavailable'] as const;
  const common = { params: { name: 'Name of the key.' }, alwaysNeedsKey: true } as const;
  return [
    {
      ...{ ...common, method: 'PATCH', route: '/keys/{name}', errors },
      ...{ id: 'changeKey', summary: 'Change the options of a key' },
      description: 'Options that are not named stay; null removes one. Keys of the operator cannot be changed.',
      body: { schema, example: { weight: 2 } },
      answer,
      answerText: 'The key with its options.',
    },
    {
      ...{ ...common, method: 'DELETE', route: '/keys/{name}', errors: [...keptErrors, 'not_found'] },
      ...{ id: 'deleteKey', summary: 'Delete a key' },
      description: 'The service refuses the key at once. The data of its client stay: see `POST /store/purge`.',
      answer: removedKey,
      answerText: 'The key was deleted.',
    },
    {
      ...{ ...common, method: 'POST', route: '/keys/{name}/rotate', errors },
      ...{ id: 'rotateKey', summary: 'Replace the value of a key' },
      description: 'The key keeps its options and its client.',
      body: { schema: rotateKeyRequest, example: {} },
      answer: newAnswer,
      answerText: 'The new key, which is not shown again.',
    },
  ];
}

export const logEvents = {
  key_made: 'a client made a key over HTTP: name, by',
  key_changed: 'a client changed the options of a key over HTTP: name, by',
  key_removed: 'a client removed a key over HTTP: name, by',
  key_rotated: 'a client replaced the value of a key over HTTP: name, by',
} as const;

/** Reads the digests in the file of the keys; finds a warning if the file is damaged or unreadable. */
export async function inspectFiles(
  { store, stateFolder, needsKey, keyOptions }: SettingsOfFiles,
  read: ReadFile,
): Promise<FileFindings> {
  if (store.isShared || stateFolder === null || !needsKey) return { warnings: [], keyDigests: [] };
  const path = join(stateFolder, stateFileName);
  try {
    const keys = await readMadeKeysAt(path, read, keyOptions);
    return { warnings: [], keyDigests: keys.flatMap(digestsOf) };
  } catch (error) {
    const warning = `MODEL_API_STATE_FOLDER: ${path} ${(error as Error).message}: no key in it works`;
    return { warnings: [warning], keyDigests: [] };
  }
}

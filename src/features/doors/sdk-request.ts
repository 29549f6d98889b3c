import type { Request } from 'express';
import { invalid } from '../../shared/errors.js';
import type { Message } from '../../shared/job.js';
import { subClientByBody } from '../../worker/access/authenticate.js';
import { type BodySchema, readBody } from '../../worker/http/body.js';
import type { Reply } from '../../worker/http/exchange.js';
import { type FileForms, fillFiles, senderOf } from '../../worker/jobs/file-references.js';
import {
  type AttachmentFields,
  ignoredFields,
  maxIgnored,
  type ParsedRequest,
  type RequestedJob,
  type SentFields,
} from '../../worker/jobs/job-request.js';
import type { JobParts } from '../../worker/jobs/run-job.js';
import { type ParsedTools, samplingOf } from './tool-offer.js';

/** Requests of APIs whose clients store the conversation themselves. */

/** How a body is read: its schema, its parts that refer to files, and the field with the name of the user. */
export interface SdkBody<T> {
  readonly schema: BodySchema<T>;
  readonly fileForms: FileForms;
  userIn(body: T): string | null | undefined;
  /** Removes the field of the user. */
  withoutUser(body: T): T;
}

/** Reads and checks a body, adds the files to which it refers, and sets the sub-client from its user. */
export async function readSdkBody<T extends object>(
  req: Request,
  res: Reply,
  { bodies, features }: Pick<JobParts, 'bodies' | 'features'>,
  { schema, fileForms, userIn, withoutUser }: SdkBody<T>,
): Promise<T> {
  const body = await readBody(req, res, bodies, schema);
  const usesUser = subClientByBody(req, res, userIn(body) ?? undefined);
  await fillFiles(features.readFiles, body, fileForms, senderOf(res));
  return usesUser ? withoutUser(body) : body; // a user that has an effect is not reported as ignored
}

/** Name in answers for the model of a request that names none, until the model CLI has reported its name. */
const defaultModel = 'default';

/** Request body of an SDK's API, with its parts translated. */
export interface SdkRequest
  extends Pick<ParsedRequest, 'wishFields' | 'ignored' | 'effortField' | 'schemaWish' | keyof AttachmentFields> {
  readonly body: SentFields & { readonly model?: string | null | undefined };
  /** Fields of the body that the service supports, or that `ignored` has. */
  readonly known: ReadonlySet<string>;
  readonly conversation: Pick<RequestedJob, 'system' | 'history'> & { readonly question: Message };
  readonly tools: ParsedTools;
  readonly sampling: Parameters<typeof samplingOf>[0];
  readonly job: Pick<
    RequestedJob,
    'schema' | 'effort' | 'stop' | 'cache' | 'hasCallIds' | 'thinking' | 'earlier' | 'stream'
  >;
}

/**
 * Returns the request of an SDK: the client stores the conversation, and effort is ignored if the model CLI does not
 * support it.
 */
export function sdkRequest({ body, known, conversation, tools, sampling, job, ...fields }: SdkRequest): ParsedRequest {
  const model = body.model || undefined;
  const { system, history, question } = conversation;
  const { text, images, results } = question;
  const { offer, forms, dropped, search } = tools;
  if (search !== undefined && job.schema !== undefined)
    throw invalid(search.path, 'cannot be used with a schema of the answer');
  const found = search && { search };
  const prompt = { text, images, results, history, system, offer, ...found, sampling: samplingOf(sampling) };
  const ignored = [...ignoredFields(body, known), ...dropped.map((type) => `tools.${type}`), ...fields.ignored];
  return {
    ...fields,
    job: { operation: 'ask', ...prompt, ...job, model, serviceTier: body.service_tier, isEffortNeeded: false },
    model: model ?? defaultModel,
    forms,
    droppedTools: dropped,
    ignored: ignored.slice(0, maxIgnored), // they are stored with a background job
  };
}

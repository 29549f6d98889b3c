import type { ClientText } from './client.js';
/** Files as the primary reports them. Times are in milliseconds since the epoch. */

/** Purposes of uploaded files. */
export const uploadPurposes = ['batch', 'user_data'] as const;

/**
 * `batch_output`: results of a batch whose requests its client has uploaded. `message_batch`: requests and results of a
 * batch that was created with its requests.
 */
export const filePurposes = [...uploadPurposes, 'batch_output', 'message_batch'] as const;
export type FilePurpose = (typeof filePurposes)[number];

/** Message of the error of a line whose result has no room. Another `payload_too_large` concerns the line itself. */
export const noRoomForResult =
  'the line was not sent, because the files of this client have no room for its result (see MODEL_API_FILES_MB and MODEL_API_FILES)';

/** File as the primary reports it. */
export interface FileView {
  readonly id: string;
  readonly purpose: FilePurpose;
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: number;
  /** Number of lines that are not empty; 0 if the lines are not requests. */
  readonly lines: number;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** Order of a page. `after`: id of the last entry of the previous page. */
export interface PageOrder {
  readonly client: ClientText;
  readonly after: string | null;
  readonly limit: number;
  readonly isAscending: boolean;
}

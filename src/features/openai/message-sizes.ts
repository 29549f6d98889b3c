import { isDocument, type Message } from '../../shared/job.js';
import { attachmentsIn, bytesOfImages } from '../../shared/text/turns.js';

/** Returns the approximate size of all texts and images of messages, in bytes. */
export function bytesOfMessages(messages: readonly Message[]): number {
  let bytes = 0;
  for (const { text, images, calls = [], results = [] } of messages) {
    bytes += overheadBytes + Buffer.byteLength(text) + bytesOfImages(images);
    for (const { input } of calls) bytes += overheadBytes + Buffer.byteLength(input);
    for (const result of results)
      bytes += overheadBytes + Buffer.byteLength(result.text) + bytesOfImages(result.images);
  }
  return bytes;
}

/** Size of a message in addition to its texts, which also limits the number of messages. */
const overheadBytes = 64;

export function haveImages(messages: readonly Message[]): boolean {
  return attachmentsIn(messages).some((each) => !isDocument(each));
}

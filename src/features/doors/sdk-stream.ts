/** Base of streams for SDKs, which skip comments and know no events of the queue. */
export abstract class SdkStream {
  queued(position: number): string {
    return `: queued ${position}\n\n`;
  }

  started(_queueMs: number): string {
    return '';
  }
}

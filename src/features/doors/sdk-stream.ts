/** Base of streams for SDKs, which skip comments and know no events of the queue. */
export abstract class SdkStream {
  formatPosition(position: number): string {
    return `: queued ${position}\n\n`;
  }

  formatStart(_queueMs: number): string {
    return '';
  }
}

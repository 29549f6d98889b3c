/** What an order is about is no longer there. */
export class Gone extends Error {}

/** Whether an order was done is not known: the disk has not answered in time, or the thread has died in the middle of it. */
export class OutcomeUnknown extends Error {}

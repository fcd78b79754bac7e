// The histogram tab.

export const query = () => ({});
export function write() {}
export function build() {}
export function open() {}

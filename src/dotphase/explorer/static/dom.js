// Finding and making elements.

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// A new row of a table, with its title.
export function line(body, title) {
  const row = body.insertRow();
  row.append(element("th", { scope: "row" }, title));
  return row;
}

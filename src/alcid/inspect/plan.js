/* The map of a plan: blocks of files first, then files with their row groups. No file is a node of
   the document before it is looked at. */
(() => {
  "use strict";
  const BLOCKS = 40; // rows that are shown at a time
  const FILES = 60; // files that are shown one by one
  const CELLS = 200; // of a block, at most
  const GROUPS = 100; // rows of a table of row groups
  const BLOCKS_HINT =
    "Choose a stage to see its files only; open a block to see what is in it. Where a cell stands " +
    "for several files, it shows which of them got furthest.";
  const FILES_HINT =
    "Choose a stage to see its files only; open a file to see its row groups. Bars are as long as " +
    "files are large; the pale part of a row group is not read.";
  const SVG = "http://www.w3.org/2000/svg";
  const grouped = new Intl.NumberFormat("en");

  const number = (value) => grouped.format(value);
  const files = (count) => `${number(count)} file${count === 1 ? "" : "s"}`;
  const size = (value) => {
    let unit = 0;
    for (; value >= 999.5 && unit < 4; unit += 1) value /= 1000;
    return `${value.toFixed(unit && value < 9.95 ? 1 : 0)} ${["B", "kB", "MB", "GB", "TB"][unit]}`;
  };
  const make = (tag, named = {}, ...parts) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(named)) made.setAttribute(name, value);
    made.append(...parts);
    return made;
  };

  class Plan {
    constructor(root, data) {
      this.data = data;
      this.map = root.querySelector(".map");
      this.keys = [...root.querySelectorAll(".key")];
      this.stageOf = data.reasons.map(([stage]) => stage);
      this.unpack();
      this.read = data.stages.indexOf("read");
      this.only = null;
      for (const key of this.keys) key.addEventListener("click", () => this.choose(key));
      this.show(null);
    }

    unpack() {
      const { data } = this;
      const count = data.names.length;
      this.codes = new Int16Array(count);
      this.folderOf = new Int32Array(count);
      let at = 0;
      for (let run = 0; run < data.codes.length; run += 2) {
        this.codes.fill(data.codes[run], at, (at += data.codes[run + 1]));
      }
      at = 0;
      data.folders.forEach(([, many], folder) => this.folderOf.fill(folder, at, (at += many)));
      this.folders = data.folders.map(([path]) => (path ? path.split("/") : []));
      let before = "";
      this.names = data.names.map((coded) => {
        const head = coded.charCodeAt(0) - 48;
        const tail = coded.charCodeAt(1) - 48;
        before = before.slice(0, head) + coded.slice(2) + before.slice(before.length - tail);
        return before;
      });
      this.groups = new Map(data.groups.map(([file, ...runs]) => [file, runs]));
    }

    /* The files of one stage, or all again. */
    choose(key) {
      const same = key.getAttribute("aria-pressed") === "true";
      for (const one of this.keys) one.setAttribute("aria-pressed", String(!same && one === key));
      this.show(same ? null : this.data.stages.indexOf(key.dataset.stage));
    }

    show(stage) {
      const all = this.codes.length;
      let count = 0;
      const view = new Int32Array(all);
      for (let file = 0; file < all; file += 1) {
        if (stage === null || this.stageOf[this.codes[file]] === stage) view[count++] = file;
      }
      this.view = view.subarray(0, count);
      this.only = stage;
      const label = stage === null ? "all files" : this.data.stages[stage];
      this.trail = [{ label, from: 0, to: count, base: 0 }];
      this.draw();
    }

    open(node) {
      this.trail.push(node);
      this.draw();
      this.map.querySelector(".row")?.focus();
    }

    draw() {
      const node = this.trail.at(-1);
      const children = this.children(node);
      const rows = make("div", { class: "rows" });
      if (children) {
        const most = Math.max(...children.map((one) => one.to - one.from));
        for (const child of children) rows.append(this.block(child, most));
      } else {
        const shown = this.view.subarray(node.from, node.to);
        const largest = shown.reduce((most, file) => Math.max(most, this.data.sizes[file]), 1);
        for (const file of shown) rows.append(...this.file(file, largest, node.base));
      }
      this.map.replaceChildren(make("p", { class: "note hint" }, children ? BLOCKS_HINT : FILES_HINT), this.steps(node), rows);
    }

    steps(node) {
      const trail = make("div", { class: "trail" });
      this.trail.forEach((one, place) => {
        if (place === this.trail.length - 1) {
          trail.append(make("span", { "aria-current": "true" }, one.label));
          return;
        }
        const button = make("button", { type: "button" }, one.label);
        button.addEventListener("click", () => {
          this.trail.length = place + 1;
          this.draw();
          this.map.querySelector(".row")?.focus();
        });
        trail.append(button);
      });
      trail.append(make("span", { class: "note", role: "status" }, `${files(node.to - node.from)}, ${size(this.bytes(node))}`));
      return trail;
    }

    bytes({ from, to }) {
      let sum = 0;
      for (let place = from; place < to; place += 1) sum += this.data.sizes[this.view[place]];
      return sum;
    }

    /* Folders, or runs of them, or runs of files; null where files are few. */
    children({ from, to, base }) {
      if (to - from <= FILES) return null;
      for (let depth = base; ; depth += 1) {
        const parts = [];
        let deeper = false;
        let folder = -1;
        let part = null;
        for (let place = from; place < to; place += 1) {
          if (this.folderOf[this.view[place]] !== folder) {
            folder = this.folderOf[this.view[place]];
            const steps = this.folders[folder];
            const label = steps[depth] ?? "";
            deeper ||= depth < steps.length;
            if (part?.label !== label) parts.push((part = { label, from: place, base: depth + 1 }));
          }
          part.to = place + 1;
        }
        if (!deeper) return this.runs(from, to, depth);
        if (parts.length > BLOCKS) return Plan.bunches(parts, depth);
        if (parts.length > 1) {
          for (const part of parts) part.label ||= "files beside the folders";
          return parts;
        }
      }
    }

    static bunches(parts, depth) {
      const each = Math.ceil(parts.length / BLOCKS);
      const found = [];
      for (let start = 0; start < parts.length; start += each) {
        const last = parts[Math.min(start + each, parts.length) - 1];
        const first = parts[start];
        const label = first === last ? first.label : `${first.label} \u2013 ${last.label}`;
        found.push({ label, from: first.from, to: last.to, base: depth });
      }
      return found;
    }

    runs(from, to, base) {
      const each = Math.max(Math.ceil((to - from) / BLOCKS), FILES);
      const found = [];
      for (let start = from; start < to; start += each) {
        const end = Math.min(start + each, to);
        const label = `files ${number(start - from + 1)} \u2013 ${number(end - from)}`;
        found.push({ label, from: start, to: end, base });
      }
      return found;
    }

    block(node, most) {
      const count = node.to - node.from;
      let read = 0;
      for (let place = node.from; place < node.to; place += 1) {
        read += this.stageOf[this.codes[this.view[place]]] === this.read;
      }
      const told = this.only === null ? `${number(read)} read` : size(this.bytes(node));
      const second = this.only === null && !read ? "" : told;
      const row = make(
        "button",
        { type: "button", class: "row", "aria-label": `${node.label}: ${files(count)}, ${told}` },
        make("span", { class: "name", title: node.label }, node.label),
        this.strip(node, Math.max(count / most, 0.01)),
        make("span", { class: "count" }, files(count)),
        make("span", { class: `count${read ? " some" : ""}` }, second),
      );
      row.addEventListener("click", () => this.open(node));
      return row;
    }

    /* The files of a block as cells; of several in a cell, the one that got furthest is seen. */
    strip({ from, to }, share) {
      const count = to - from;
      const cells = Math.min(count, CELLS);
      const paths = this.data.stages.map(() => "");
      const width = 1000 / cells;
      const gap = cells <= 60 ? width / 12 : 0;
      for (let cell = 0; cell < cells; cell += 1) {
        let stage = 0;
        const end = from + Math.floor(((cell + 1) * count) / cells);
        for (let place = from + Math.floor((cell * count) / cells); place < end; place += 1) {
          stage = Math.max(stage, this.stageOf[this.codes[this.view[place]]]);
        }
        const x = (cell * width).toFixed(1);
        const wide = (width - gap).toFixed(1);
        paths[stage] += `M${x} 0h${wide}v10h-${wide}z`;
      }
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("viewBox", "0 0 1000 10");
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("aria-hidden", "true");
      svg.setAttribute("shape-rendering", "crispEdges");
      svg.style.width = `${share * 100}%`;
      paths.forEach((path, stage) => {
        if (!path) return;
        const drawn = document.createElementNS(SVG, "path");
        drawn.setAttribute("d", path);
        drawn.setAttribute("class", `c${this.data.colours[stage]}`);
        svg.append(drawn);
      });
      return make("span", { class: "strip" }, svg);
    }

    file(file, largest, base) {
      const { sizes, rows, reasons } = this.data;
      const [stage, reason] = reasons[this.codes[file]];
      const name = this.path(file);
      const bar = make("span", { class: "groups" });
      bar.style.width = `${Math.max((sizes[file] / largest) * 100, 1)}%`;
      for (const group of this.cut(file)) {
        const piece = make("i", { class: `c${this.data.colours[group.stage]}`, title: group.told });
        piece.style.flexGrow = Math.max(group.rows, 1);
        if (group.share < 1) {
          piece.classList.add("part");
          piece.style.setProperty("--share", `${group.share * 100}%`);
        }
        bar.append(piece);
      }
      const stageName = this.data.stages[stage];
      const row = make(
        "button",
        { type: "button", class: "row", "aria-expanded": "false" },
        make("span", { class: "name", title: name }, this.path(file, base)),
        make("span", { class: "strip" }, bar),
        make("span", { class: "count" }, size(sizes[file])),
        make("span", { class: "count" }, stageName),
      );
      row.setAttribute("aria-label", `${name}: ${size(sizes[file])}, ${stageName}, ${reason}`);
      const more = make("div", { class: "more", hidden: "" });
      row.addEventListener("click", () => {
        const opens = more.hidden;
        if (opens && !more.childNodes.length) {
          const told = `${stageName}: ${reason}. ${number(rows[file])} rows, ${size(sizes[file])}.`;
          more.append(make("p", {}, name), make("p", { class: "note" }, told), this.table(file));
        }
        more.hidden = !opens;
        row.setAttribute("aria-expanded", String(opens));
      });
      return [row, more];
    }

    path(file, base = 0) {
      return [...this.folders[this.folderOf[file]].slice(base), this.names[file]].join("/");
    }

    /* The row groups of a file; one piece, if it was not opened. */
    cut(file) {
      const { reasons, rows } = this.data;
      const runs = this.groups.get(file);
      if (!runs) {
        const [stage, reason] = reasons[this.codes[file]];
        return [{ stage, rows: rows[file], share: 1, told: reason }];
      }
      const found = [];
      for (let at = 0; at < runs.length; at += 6) {
        const [many, count, code, looked, pages, all] = runs.slice(at, at + 6);
        const [stage, reason] = reasons[code];
        const isRead = stage === this.read;
        const share = isRead && pages >= 0 ? pages / Math.max(all, 1) : 1;
        const seen = isRead ? `, ${number(looked)} of ${number(count)} rows looked at` : "";
        const told = pages >= 0 && isRead ? `${seen}, ${number(pages)} of ${number(all)} pages` : seen;
        const one = { stage, reason, rows: count, looked, pages, all, share, isRead };
        for (let same = 0; same < many; same += 1) {
          found.push({ ...one, told: `row group ${found.length}: ${this.data.stages[stage]}: ${reason}${told}` });
        }
      }
      return found;
    }

    table(file) {
      const groups = this.groups.has(file) ? this.cut(file) : [];
      if (!groups.length) return make("p", { class: "note" }, "It was not opened, so its row groups are not known.");
      const cell = (text) => make("td", { class: "number" }, text);
      const body = make("tbody");
      groups.slice(0, GROUPS).forEach((group, place) => {
        const pages = group.isRead && group.pages >= 0 ? `${number(group.pages)} of ${number(group.all)}` : "";
        const dot = make("i", { class: `c${this.data.colours[group.stage]} dot` });
        const outcomeCell = make("td", {}, dot, `${this.data.stages[group.stage]}: ${group.reason}`);
        const looked = group.isRead ? number(group.looked) : "";
        const cells = [number(place), number(group.rows), looked, pages];
        body.append(make("tr", {}, ...cells.map(cell), outcomeCell));
      });
      const heads = ["row group", "rows", "looked at", "pages read", "what became of it"];
      const head = make("tr", {}, ...heads.map((text, at) => make("th", { scope: "col", class: at < 4 ? "number" : "" }, text)));
      const whole = make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), body));
      if (groups.length > GROUPS) whole.append(make("p", { class: "note" }, `and ${number(groups.length - GROUPS)} more`));
      return whole;
    }
  }

  for (const root of document.querySelectorAll(".alcid .plan:not([data-ready])")) {
    const found = root.querySelector('script[type="application/json"]');
    if (!found) continue;
    root.dataset.ready = "";
    new Plan(root, JSON.parse(found.textContent));
  }
})();

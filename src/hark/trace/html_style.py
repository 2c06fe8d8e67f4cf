"""The style of the timeline's page: light and dark, from a phone to a wide screen."""

STYLE = """
:root{--ground:#fbfbfa;--card:#fff;--ink:#1c2024;--soft:#5c6570;--edge:#e3e5e8;--rule:#eef0f2;
--model:#2f6fde;--tool:#17875a;--question:#8a4fd0;--pause:#b27100;--snapshot:#5f7486;--compaction:#0b7f8c;
--message:#0b6c94;--cut:#cf2d2d;--focus:#2f6fde}
@media (prefers-color-scheme:dark){:root{--ground:#121417;--card:#1a1d21;--ink:#e7eaee;--soft:#9aa4af;--edge:#2c3137;
--rule:#22262b;--model:#6b9dff;--tool:#3fc48b;--question:#bb8cf5;--pause:#e3a53a;--snapshot:#8fa5b8;
--compaction:#3fb9c6;--message:#5bc0eb;--cut:#ff6b6b;--focus:#8db4ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px 20px 60px}
h1{font-size:1.35rem;margin:0 0 10px;overflow-wrap:anywhere}
h2{font-size:1.05rem;margin:0;overflow-wrap:anywhere}
h3{font-size:.95rem;margin:0 0 8px;color:var(--cut)}
.defs{position:absolute}
.hatch-ground{fill:var(--cut);opacity:.35}.hatch-line{fill:var(--cut)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 16px;margin:0 0 18px;padding:0;color:var(--soft);
font-size:.82rem}
.swatch{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px;
background:currentColor}
.swatch.message{transform:rotate(45deg) scale(.85);border-radius:1px}
.model{--own:var(--model)}.tool{--own:var(--tool)}.question{--own:var(--question)}.pause{--own:var(--pause)}
.snapshot{--own:var(--snapshot)}.compaction{--own:var(--compaction)}.message{--own:var(--message)}.cut{--own:var(--cut)}
.swatch,.kind{color:var(--own,var(--soft))}
.turn{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:18px 18px 12px;margin:0 0 22px}
header{display:flex;flex-wrap:wrap;gap:6px 12px;align-items:baseline}
time{color:var(--soft);font-size:.85rem;margin-left:auto}
.outcome{font-size:.85rem;font-weight:600;padding:1px 9px;border-radius:99px;border:1px solid currentColor;
overflow-wrap:anywhere}
.outcome.good{color:var(--tool)}.outcome.cut,.outcome.wrong{color:var(--cut)}.outcome.runs{color:var(--model)}
.facts{display:flex;flex-wrap:wrap;gap:8px 28px;margin:14px 0 16px}
.facts dt{font-size:.75rem;color:var(--soft)}
.facts dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}
.facts .cut dd{color:var(--cut)}
.hint{color:var(--soft);margin:8px 0;font-size:.88rem}
.axis,summary,.cost{display:grid;grid-template-columns:minmax(0,300px) minmax(0,1fr) 84px;gap:0 14px;align-items:center}
.axis{border-bottom:1px solid var(--edge);height:20px;font-size:.74rem;color:var(--soft)}
.axis div{grid-column:2;position:relative;height:20px}
.axis span{position:absolute;transform:translateX(-50%);white-space:nowrap}
.axis span:first-child{transform:none}
details{border-bottom:1px solid var(--rule)}
summary{list-style:none;cursor:pointer;padding:5px 4px;border-radius:6px;min-height:30px}
summary::-webkit-details-marker{display:none}
summary:hover{background:var(--rule)}
summary:focus-visible{outline:2px solid var(--focus);outline-offset:-2px}
.name{white-space:nowrap;overflow:hidden;text-overflow:ellipsis;font-size:.88rem}
.name::before{content:"▸";color:var(--soft);display:inline-block;width:15px}
details[open] .name::before{content:"▾"}
.cost .name::before{content:""}
.kind{font-weight:600;margin-right:2px}
.title{color:var(--soft)}
.note{font-size:.78rem;padding:0 6px;border-radius:99px;border:1px solid var(--edge);margin-left:4px}
.note.bad{color:var(--cut);border-color:var(--cut)}
.took{text-align:right;font-size:.82rem;font-variant-numeric:tabular-nums;color:var(--soft);white-space:nowrap}
.bar{width:100%;overflow:visible;display:block}
rect{fill:var(--own,var(--soft))}
rect.bad{fill:url(#hatch)}
rect.silent{fill:var(--card);opacity:.62}
rect.settle{fill:url(#hatch)}
text{fill:var(--soft);font-size:12px}
path.message{fill:var(--message)}
line.cut{stroke:var(--cut);stroke-width:1.5;stroke-dasharray:3 3}
.depth1 .name{padding-left:18px}.depth2 .name{padding-left:36px}.depth3 .name{padding-left:54px}
details>dl{display:grid;grid-template-columns:minmax(70px,max-content) minmax(0,1fr);gap:4px 16px;
margin:2px 4px 12px 19px;padding:10px 14px;background:var(--ground);border:1px solid var(--rule);
border-radius:8px;font-size:.85rem}
dt{color:var(--soft)}
details dd{margin:0;overflow-wrap:anywhere}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font:12.5px/1.5 ui-monospace,monospace;max-height:24em;
overflow:auto}
.interrupt{margin:18px 0 8px;padding:12px 14px;border:1px solid var(--cut);border-radius:10px}
@media (max-width:680px){
main{padding:14px 10px 40px}.turn{padding:14px 10px 8px;border-radius:10px}
summary,.cost{grid-template-columns:minmax(0,1fr) auto;gap:2px 10px;padding:7px 2px}
summary .bar,.cost .bar{grid-column:1/-1;grid-row:2}
.axis{grid-template-columns:minmax(0,1fr)}.axis div{grid-column:1}
.axis span:nth-child(even){display:none}
time{margin-left:0}
details>dl{grid-template-columns:minmax(0,1fr);gap:0;margin-left:2px}details>dl dd{margin-bottom:8px}
}
@media print{body{background:#fff}.turn{break-inside:avoid}}
"""

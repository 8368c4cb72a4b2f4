//! The costliest genomes that the search has found, named by the reason why each exceeded the promised cost.

/// Names and genomes in hexadecimal digits.
pub const FOUND: &[(&str, &str)] = &[
    (
        "divisions and indirect calls below a pile of operands, without signals",
        "289e7d4612013917fb091c1948e9064048e906409aac1a1a6e40c71a6e40c71a9aac1a1a6e40c71a48e90640\
         48e9064048e90640fb091c196e201a1a",
    ),
    (
        "remainders and conversions below a pile of operands, without signals",
        "1848141d485b9b9c814b97b60505110d814b977d",
    ),
    (
        "indirect calls and saturating lanes below a pile of operands, without signals",
        "d508caa49914cbdafac13d2fbb90ba68a724c8730214f6a7fe97e2297ce6d4e3ba900b688b074cd6",
    ),
    (
        "divisions where many locals live, without signals",
        "f5f9b64aa122aebdc7f7af930e9e938d459a4e8075220f25c7f7af93c4d3df6860a5ec06c7f7af93302eda17\
         81ab2023",
    ),
    (
        "growing memories where many locals live, without signals",
        "a59f21cd208e9f3a5ed8ff3fab285fd6ab285fd6057dc787fce84304fbc41ac4fd00f1a2b2baf286fbc41ac4\
         fd00f1a2b5dbd7c2e8d390ac6b44503ab5dbd7c2b5dbd7c232b6e091ab285fd6fbc41ac4e741e5e1ab285fd6\
         73f04b2a154fc88587da4e2b",
    ),
    (
        "vector operands of phis",
        "1537a6241ad50c9e4629176756ef40b81b1bdfe7052c819ed2ccf9ea891fe22c823ae1a782b8cad9271acbc7\
         0b46b48c88e08b4755d873ee58df8566b117048e55d873ee",
    ),
    (
        "wide calls in one pass, without signals",
        "79e94a803fe9c0ca52759e585a2b0c5a87cea358475ecc2e5a2b0c5a5a2b0c5ae3c859cc43d076ee5a2b0c5a\
         0b9ad6335a2b0c5a81249f5af4c5698434d4ed735a2b0c5a301a5e095a2b0c5a0b9ad633",
    ),
    (
        "constants and checks, without signals",
        "479e1eaaa091c371d8e6cdfd624e96cedc92d021222e091d624e96cee557f99dfd55685b1ad409d8fca628ca\
         9d14121567cc67861ad409d8fca628ca67cc",
    ),
    (
        "slots in memory and checks, without signals",
        "faef6e0452b91e301b89afee1b89afeea6e3d142fcf757efa6e3d14209a377c97c5b193d3c6e42ed09a377c9\
         7c5b193d3c6e42edb3810d1b5da7d7be5ca3253e53ff2bba364bbd7fdb8b4326506c7b897c5b193d09a377c9\
         1391fc855da7d7be",
    ),
    (
        "slots in memory and wide operands, without signals",
        "65cb727820f2a6703a40348b3a40342370d96db5348f9e335475b1aff23544f12955086512951e7b951a16af\
         348f9e333a4034238b2a24c8348f9e33951a16af3a403423348f9e336f2ddae93a403423",
    ),
    (
        "operations needed after each of many branches, which the optimiser computes again there",
        "56a2ea99c0ab168211ef0bd05ecbe1b673825bd5702fbf6a08485892f6d8d2e2c92653d4c748589249ace001\
         c7485892c7485892c7485892c7485892",
    ),
    (
        "the same for vectors and integers",
        "dd93121b1ffedc8964bb1baaa0875b52841f6203da50164376705ce4a24fc25264bb1baada501643da501643\
         a0875b524918a96e",
    ),
    (
        "locals that live at the targets of switches, as variables",
        "bb52ad841c71794b935234ea345df6511922053015fdec8f5ed4ff5ed0062cd996cb89a20b57a39166968af3\
         19220530157f538f5ed4ff5e157f538f96cb89a28d33999d",
    ),
    (
        "variables that live in many blocks",
        "fb20261435521b3e73251313e8718a1757aa1c9857aa1c98f6918c44eb4c78de6a10707b625459686027b0e4\
         f6918c44eb4c78de625459686027b0e42e40779f57aa1c98f6918c44eb4c62de6a10707b7706c5c0e8a13217",
    ),
    (
        "callees hoisted out of a nest, without signals",
        "02ad4db99043cdcad530547195e0cb507dea5c324d39bfe36bb59430d5305471c3085b17b4106c48bf916a7c\
         95e0cb50dfe31af4bf916a7c95e0cb50e9255d7f9aec8f73ef2fed7c95e0cb50dfe31af4bf916a7c95e0cb50\
         9aec5473ff081f609aec0a736bb59430e76b3946d5305471ef2fed7c",
    ),
    (
        "operands kept in slots, without signals",
        "511c2ab13f0f8dcb34caafb75866d79176f9afffdea5033c8d728d6da0571f6a8d728d6da0571f6a3c75e396\
         3c75e39dec0f5edc5c4d0c582066d791ae204baf6af75b3bde4b033c43391b2734caafb7a0571f6a2066d70b\
         0132d9caf803be12",
    ),
    (
        "vector conversions needed after each of many branches",
        "d7c7a60d81142b062952e59af724173a13f04f65833fc91ac58c6704833fc91a9adc18cd511f1112789ddca3\
         91c3378bdd0d5628833fc91a91c3378bdd0d56287654198d",
    ),
    (
        "constants live across checks, without an optimiser that makes them again",
        "c5e886bdb367d9c4f28edb338e259119a7c0f1ada7c0f1ddcc629a53d77accfb",
    ),
    (
        "values that live through a large block of operations whose NaNs become canonical",
        "cf174e053f4bc74a75892b6307735750",
    ),
    (
        "values that live in many blocks, in one pass",
        "ad1c4219974eebc4d8d80ffa9adc14cd3c1441433c144143b3919019b3919090493dee8cb7f4c5243c144143\
         b7f4c52417adc1ac3af01a1cb3919090b7f4c52417adc1ac3af01a1cb3919090493dee8c3c144143",
    ),
];
